-- What only a look at all channels tells, asked once a run for the numbers of telemetry: a paused channel is no work, so a run that looks for work never sees it.
-- Reads the one row of each channel, and of a paused one the first entry of queue_due.

create function fencepost.paused_channels(p_channels text[]) returns int language plpgsql stable security definer
set search_path = pg_catalog, pg_temp set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off as $f$
declare v_now timestamptz := fencepost.now_(); v_all boolean := coalesce(cardinality(p_channels), 0) = 0;
begin
  return (
    select count(*) from fencepost.channel c
     where (v_all or c.name = any(p_channels)) and c.paused_until > v_now
       and exists (select 1 from unnest('{0,1,2}'::smallint[]) as p(priority),
                     lateral (select 1 from fencepost.queue q where q.channel = c.id and q.priority = p.priority and q.due_at <= v_now order by q.due_at limit 1) q));
end $f$;
