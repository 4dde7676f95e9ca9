-- The whole account of the database, counted from its tables in one snapshot. Reads only.
select (select count(*) from fencepost.notification) as enqueued,
       (select count(*) from fencepost.queue) as open,
       (select count(*) from fencepost.closed) as closed,
       (select count(*) from fencepost.notification n
         where (select count(*) from fencepost.queue q where q.notification_id = n.id)
             + (select count(*) from fencepost.closed c where c.notification_id = n.id) <> 1) as misplaced,
       (select count(*) from fencepost.queue q where q.lease_until > fencepost.now_()) as leased,
       (select count(*) from fencepost.closed c where c.kind = 'delivered') as delivered,
       (select count(*) from fencepost.closed c where c.kind = 'dead') as dead,
       (select count(*) from fencepost.closed c where c.kind = 'uncertain') as held,
       (select count(distinct a.notification_id) from fencepost.attempt a where a.outcome in ('failed', 'not_sent', 'uncertain')) as retried,
       (select count(*) from fencepost.attempt a where a.taken_over) as taken_over,
       (select coalesce(sum(length(translate(j.verdicts, 'ARU', ''))), 0) from fencepost.journal j) as late_words,   -- L late, C conflict
       (select count(*) from fencepost.evidence e where e.source = 'late') as late_evidence,
       (select count(*) from fencepost.run) as runs,
       (select coalesce(max(c.together), 0)
          from fencepost.run r
          cross join lateral (select count(*) as together from fencepost.run o
                               where o.started_at <= r.started_at and coalesce(o.ended_at, o.deadline_at, o.seen_at) > r.started_at) c) as overlapping;
