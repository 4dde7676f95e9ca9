-- What the run of one tick holds now: the subject of each row (its dedupe key), its fence, and when it was claimed.
select n.dedupe_key, q.notification_id, q.fence, extract(epoch from q.claimed_at)::float8 as claimed_at
  from fencepost.queue q
  join fencepost.run r on r.id = q.run_id
  join fencepost.notification n on n.id = q.notification_id
 where r.invocation = %(invocation)s and r.ended_at is null;
