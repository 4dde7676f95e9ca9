-- What an event made of the database, counted from its tables in one snapshot. Reads only.
select (select count(*) from fencepost.notification) as enqueued,
       (select count(*) from fencepost.queue) as open,
       (select count(*) from fencepost.queue q where q.due_at <= fencepost.now_()) as due,
       (select count(*) from fencepost.queue q where q.lease_until > fencepost.now_()) as leased,
       (select count(*) from fencepost.queue q where q.doubt) as doubted,
       (select count(*) from fencepost.closed) as closed,
       (select count(*) from fencepost.closed c where c.kind = 'delivered') as delivered,
       (select count(*) from fencepost.closed c where c.kind = 'dead') as dead,
       (select count(*) from fencepost.closed c where c.kind = 'uncertain') as uncertain,
       (select count(*) from fencepost.closed c where c.kind = 'cancelled') as cancelled,
       (select count(*) from fencepost.notification n where n.replay_of is not null) as replays,
       (select count(*) from fencepost.notification n
         where (select count(*) from fencepost.queue q where q.notification_id = n.id)
             + (select count(*) from fencepost.closed c where c.notification_id = n.id) <> 1) as misplaced,
       (select count(*) from fencepost.attempts) as attempts,
       (select count(*) from fencepost.evidence) as evidence,
       (select coalesce(sum(length(j.verdicts) - length(replace(j.verdicts, 'C', ''))), 0) from fencepost.journal j) as conflicts,
       (select count(*) from fencepost.command) as commands,
       (select count(*) from fencepost.command_fault) as faults,
       (select count(*) from fencepost.installation) as bound,
       (select count(*) from fencepost.run) as runs,
       (select count(*) from fencepost.run r where r.ended_at is null) as unended_runs;
