-- Claim at most n due rows: by ctid, priorities in order, an interrupted one is put on record. With its body.
with u as (
  update plain.queue q
     set fence = q.fence + 1, attempts = q.attempts + 1, interrupted = (q.lease_until > '-infinity'), lease_until = now() + %(ttl)s::interval
   where q.ctid = any(array(
     select s.ctid from unnest(%(prios)s::smallint[]) as p(prio),
       lateral (select ctid from plain.queue where priority = p.prio and next_attempt_at <= now() and lease_until <= now()
                order by next_attempt_at, notification_id limit %(n)s::int for update skip locked) s
     limit %(n)s::int))
  returning q.notification_id, q.fence, q.attempts, q.interrupted),
amb as (insert into plain.attempts (notification_id, fence, outcome)
        select notification_id, fence - 1, 9 from u where interrupted on conflict do nothing)
select u.*, (select payload from plain.notifications n where n.id = u.notification_id) from u
