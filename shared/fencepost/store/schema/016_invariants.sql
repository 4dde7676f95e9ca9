-- What must always be true, as queries. They read whole tables: for proofs, drills and doubts, not for every minute.

-- Every notification is in exactly one of queue and closed, and nothing else is in either.
create function fencepost.conservation() returns table (enqueued bigint, open bigint, closed bigint, in_both bigint, in_neither bigint, strangers bigint, holds boolean)
language sql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $f$
  with s as (
    select n.id, q.notification_id as q, c.notification_id as c
      from fencepost.notification n full join fencepost.queue q on q.notification_id = n.id full join fencepost.closed c on c.notification_id = coalesce(n.id, q.notification_id))
  select count(s.id), count(s.q), count(s.c), count(*) filter (where s.q is not null and s.c is not null), count(*) filter (where s.q is null and s.c is null),
         count(*) filter (where s.id is null),
         count(*) filter (where s.id is null or (s.q is null) = (s.c is null)) = 0
    from s $f$;

-- Notifications that were delivered twice, as far as the ledgers know: delivered facts at two fences, or of two runs. Fence 0 (not known) is not a second.
create function fencepost.conflicts() returns table (id bigint, fences bigint[])
language sql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $f$
  with f as (
    select a.notification_id, a.fence, a.run_id from fencepost.attempts a where a.outcome = 'delivered'
    union
    select e.notification_id, e.fence, e.run_id from fencepost.evidence e where e.outcome = 'delivered' and e.fence > 0)
  select f.notification_id, array_agg(distinct f.fence) from f group by f.notification_id
  having count(distinct f.fence) > 1 or count(distinct f.run_id) filter (where f.run_id <> fencepost.nobody()) > 1 $f$;

-- Nobody calls a step, and nobody calls anything he was not granted.
revoke all on all functions in schema fencepost from public;
