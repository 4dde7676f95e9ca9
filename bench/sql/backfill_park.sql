-- All that is open, closed as dead or delivered a thousand at an instant, as runs would have left it.
with d as (delete from fencepost.queue returning notification_id, fence)
insert into fencepost.closed (notification_id, closed_at, claimed_at, fence, run_id, attempts, kind, outcome, phase, status, reason)
select d.notification_id, now() - interval '1 day' + d.notification_id / 1000 * interval '10 ms', now() - interval '1 day', d.fence + 1, gen_random_uuid(), 8,
       %(kind)s::fencepost.kind, case when %(kind)s = 'dead' then 'rejected'::fencepost.outcome else 'delivered' end, 'answered', 200,
       case when %(kind)s = 'dead' then 'attempts_exhausted' end
  from d
