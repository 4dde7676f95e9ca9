-- Scale-out: a run that leaves more than the next tick gets through asks for more runs, by drain messages. One wave of them is out at a time.
-- Its marker is this row: the ids of its messages (each is a command), and until when it stands whatever became of them. It is used up when all its
-- commands have ended. So overlapping ticks send one wave, and drain runs send the next only in the place of the one they belong to.

create table fencepost.wave (
  one_row boolean primary key default true check (one_row),
  run_id uuid not null default fencepost.nobody(),             -- who sent it
  ids uuid[] not null default '{}',
  begun_at timestamptz not null default '-infinity',
  until timestamptz not null default '-infinity')
  with (fillfactor = 50);
insert into fencepost.wave default values;

-- What a run could claim now, counted up to p_limit; the claim's predicate, gates included. Of a channel with a rate no more than that rate lets through
-- in p_seconds: runs beyond that would wait for tokens. Nothing of a channel that is paused, dry, or that no worker can send on.
create function fencepost.backlog(p_channels text[], p_limit int, p_seconds float8, out due int, out more boolean, out oldest_due_seconds float8)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off as $f$
declare v_now timestamptz := fencepost.now_(); v_all boolean := coalesce(cardinality(p_channels), 0) = 0; v_limit int := greatest(p_limit, 1); v_oldest timestamptz;
begin
  select count(*) into due from (
    select 1
      from fencepost.channel c,
        lateral (select 1 from unnest('{0,1,2}'::smallint[]) as p(priority),
            lateral (select 1 from fencepost.queue q
                      where q.channel = c.id and q.priority = p.priority and q.due_at <= v_now
                        and (q.lease_until <= v_now or q.lease_until > v_now + fencepost.longest_lease()) order by q.due_at limit v_limit) q
           limit case when c.rate is null then v_limit else least(v_limit, ceil(least(c.rate, 1e6) * least(greatest(p_seconds, 0), 900)))::int end) q
     where (v_all or c.name = any(p_channels)) and c.paused_until <= v_now and (c.rate is null or fencepost.tokens_(c, v_now) >= 1)
       and (c.skip_reason is null or c.skip_revision is distinct from c.revision)
     limit v_limit) counted;
  more := due >= v_limit;
  select min(q.due_at) into v_oldest
    from fencepost.channel c, unnest('{0,1,2}'::smallint[]) as p(priority),
      lateral (select q.due_at from fencepost.queue q
                where q.channel = c.id and q.priority = p.priority and q.due_at <= v_now
                  and (q.lease_until <= v_now or q.lease_until > v_now + fencepost.longest_lease()) order by q.due_at limit 1) q
   where (v_all or c.name = any(p_channels)) and c.paused_until <= v_now and (c.rate is null or fencepost.tokens_(c, v_now) >= 1)
     and (c.skip_reason is null or c.skip_revision is distinct from c.revision);
  oldest_due_seconds := coalesce(greatest(date_part('epoch', v_now) - date_part('epoch', nullif(v_oldest, '-infinity')), 0), 0);
end $f$;

-- The marker, for whoever comes first: whether this wave may go. p_part: the drain command this run is itself, which has not ended yet and is all that may be
-- left of the wave before. Busy means no: somebody is deciding just now. What has ended of the wave before is forgotten, so that the table of commands does
-- not grow with the ticks; should one of its messages come again, it is one run more.
create function fencepost.begin_wave(p_run uuid, p_ids uuid[], p_seconds float8, p_part uuid) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $f$
declare v fencepost.wave; v_now timestamptz := fencepost.now_();
begin
  if not exists (select 1 from fencepost.wave) then insert into fencepost.wave default values on conflict do nothing; end if;
  select w.* into v from fencepost.wave w for update skip locked;
  if v.one_row is null then return false; end if;
  if v.until > v_now and exists (
      select 1 from unnest(v.ids) as i(id)
       where i.id is distinct from p_part and not exists (select 1 from fencepost.command c where c.id = i.id and c.ended_at is not null)) then
    return false;
  end if;
  delete from fencepost.command c where c.id = any(v.ids) and c.what = 'drain' and c.ended_at is not null;
  update fencepost.wave
     set run_id = p_run, ids = case when p_part = any(v.ids) then p_ids || p_part else p_ids end, begun_at = v_now,
         until = v_now + least(greatest(p_seconds, 0), 86400) * interval '1 s';
  return true;
end $f$;

-- These of its messages did not leave. Nobody waits for them; where none left, the next run may try.
create function fencepost.end_wave(p_run uuid, p_unsent uuid[]) returns boolean language plpgsql security definer set search_path = pg_catalog, pg_temp as $f$
begin
  update fencepost.wave w set ids = array(select i.id from unnest(w.ids) as i(id) where i.id <> all(p_unsent)) where w.run_id = p_run;
  return found;
end $f$;
