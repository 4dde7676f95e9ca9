-- The claim: how a run comes to hold rows. It is the last step of an exchange, skips what others have locked, and waits for nobody.
-- A row is free when it was never leased, when its lease is over, or when its lease is longer than any can be (the server's clock was set back).
-- Functions whose name ends in _ are steps: only functions of this schema call them, under the pins of their caller (see 012_exchange.sql).
--
-- Rules of form, all measured; each looks like an accident:
--   a key is probed as `= any(array[x])` from an unnested array, or by `lateral (… limit 1 / offset 0)`: anything else may scan the whole index
--     with a plan that was made while the table was empty;
--   run is a column of the unnested words: as a plain filter it makes the planner expect one row and join in squares;
--   least() ignores nulls: what may be missing (tokens of a busy channel) is made 0 first;
--   a step is plpgsql, not sql: a function in plain SQL that cannot be inlined is planned at every call;
--   infinity is never subtracted from: date_part() first, then minus.

-- Tokens in a channel's bucket now. A bucket that was never filled starts full; one without a size holds a second's worth. (One expression: it is inlined.)
create function fencepost.tokens_(c fencepost.channel, p_now timestamptz) returns float8 language sql immutable as $$
  select case when c.filled_at = '-infinity' then coalesce(c.burst, greatest(c.rate, 1))
              else least(coalesce(c.burst, greatest(c.rate, 1)),
                         c.tokens + c.rate * greatest(0, date_part('epoch', p_now) - date_part('epoch', c.filled_at))) end $$;

-- What each wanted channel allows: nothing while paused, whole tokens where there is a rate. A channel whose tokens another run is taking
-- is busy: nothing now, ask again.
create function fencepost.allowed_(c_channels smallint[], c_limits int[], out limits int[], out rated boolean, out busy smallint[]) language plpgsql as $f$
declare v_now timestamptz := fencepost.now_();
begin
  select array_agg(case when c.paused_until <= v_now then least(greatest(coalesce(w.lim, 0), 0), 1000) else 0 end order by w.ord), coalesce(bool_or(c.rate is not null), false), '{}'
    into limits, rated, busy
    from unnest(c_channels, c_limits) with ordinality as w(channel, lim, ord)
    left join fencepost.channel c on c.id = any(array[w.channel]);
  if rated then
    select array_agg(case when c.rate is null then w.lim else least(w.lim, coalesce(floor(t.tokens)::int, 0)) end order by w.ord),
           coalesce(array_agg(c.id) filter (where c.rate is not null and c.paused_until <= v_now and t.tokens is null), '{}')
      into limits, busy
      from unnest(c_channels, limits) with ordinality as w(channel, lim, ord)
      left join fencepost.channel c on c.id = any(array[w.channel])
      left join lateral (select fencepost.tokens_(k, v_now) as tokens from fencepost.channel k
                          where k.id = c.id and k.rate is not null and k.paused_until <= v_now for update skip locked) t on true;
  end if;
end $f$;

-- Where to start looking: three instants (one a priority) for each wanted channel. Without a hint: the beginning.
create function fencepost.starts_(p_hinted smallint[], p_hints timestamptz[], c_channels smallint[], c_hinted boolean[]) returns timestamptz[] language plpgsql as $f$
begin
  if p_hinted = c_channels and true = all(c_hinted) then return p_hints; end if;
  return (select array_agg(coalesce(case when w.hinted then p_hints[array_position(p_hinted, w.channel) * 3 - 3 + p.place] end, '-infinity') order by w.ord, p.place)
            from unnest(c_channels, c_hinted) with ordinality as w(channel, hinted, ord), unnest('{1,2,3}'::int[]) as p(place));
end $f$;

-- The hints for the next claim, from what each place (three a wanted channel) gave (g). A channel that gave less than it was asked for has none: the next
-- look is from the beginning, and finds expired leases and late commits. A priority that was passed by gave all it had: the next look begins there a
-- second ago, however many dead heads it has (commits may be late).
create function fencepost.hints_(p_hinted smallint[], p_hints timestamptz[], c_channels smallint[], c_limits int[], g_places int[], g_dues timestamptz[], g_taken int[],
  out hinted smallint[], out hints timestamptz[]) language plpgsql as $f$
declare v_passed timestamptz := fencepost.now_() - interval '1 s'; v_last int[] := '{}'; v_left int[] := c_limits; v_channel int;
begin
  hinted := c_channels;
  hints := array_fill('-infinity'::timestamptz, array[cardinality(c_channels) * 3]);
  for k in 1 .. coalesce(cardinality(g_places), 0) loop
    v_channel := (g_places[k] + 2) / 3;
    v_left[v_channel] := v_left[v_channel] - g_taken[k];
    v_last[v_channel] := greatest(v_last[v_channel], g_places[k]);
  end loop;
  for v_channel in 1 .. cardinality(c_channels) loop
    continue when v_last[v_channel] is null or v_left[v_channel] > 0;
    for place in v_channel * 3 - 2 .. v_channel * 3 loop
      hints[place] := case when place > v_last[v_channel] then coalesce(p_hints[array_position(p_hinted, c_channels[v_channel]) * 3 + place - v_channel * 3], '-infinity')
                           else greatest(g_dues[array_position(g_places, place)], case when place < v_last[v_channel] then v_passed end) end;
    end loop;
  end loop;
  for k in 1 .. coalesce(cardinality(p_hinted), 0) loop                                                  -- the channels that were not asked now
    continue when p_hinted[k] = any(c_channels);
    hinted := hinted || p_hinted[k];
    hints := hints || p_hints[k * 3 - 2 : k * 3];
  end loop;
end $f$;

-- A takeover leaves the old holder's attempt as uncertain. What it held (o) was read as the claim locked it; a row that had changed under the claim is not
-- this run's, and was not taken over.
create function fencepost.take_over_(p_run uuid, o_ids bigint[], o_fences bigint[], o_runs uuid[], o_claimed timestamptz[]) returns void language plpgsql as $f$
begin
  insert into fencepost.attempt (notification_id, fence, run_id, claimed_at, at, outcome, taken_over)
  select o.id, o.fence, o.run, o.claimed_at, fencepost.now_(), 'uncertain', true
    from unnest(o_ids, o_fences, o_runs, o_claimed) as o(id, fence, run, claimed_at),
      lateral (select 1 from fencepost.queue q where q.notification_id = o.id and q.fence = o.fence + 1 and q.run_id = p_run offset 0) q
      on conflict do nothing;
end $f$;

-- Claim. c is what a row said before (whose lease ran out), u what it says now, g what each channel and priority gave. What happens seldom (takeovers,
-- tokens) has statements of its own: a part of a statement costs even where it finds nothing.
create function fencepost.claim_(p_run uuid, p_lease interval, p_hinted smallint[], p_hints timestamptz[], c_channels smallint[], c_limits int[], c_hinted boolean[],
  out ids bigint[], out fences bigint[], out attempts smallint[], out interruptions smallint[], out doubts boolean[], out resends boolean[],
  out hinted smallint[], out hints timestamptz[], out busy smallint[]) language plpgsql as $f$
declare
  v_now timestamptz := fencepost.now_(); v_allowed record; v_starts timestamptz[] := fencepost.starts_(p_hinted, p_hints, c_channels, c_hinted); v_hints record;
  g_places int[]; g_dues timestamptz[]; g_taken int[]; o_ids bigint[]; o_fences bigint[]; o_runs uuid[]; o_claimed timestamptz[];
begin
  v_allowed := fencepost.allowed_(c_channels, c_limits);
  busy := v_allowed.busy;
  with c as materialized (
    select s.* from unnest(c_channels, v_allowed.limits) with ordinality as w(channel, lim, ord),
      lateral (select s.* from unnest('{0,1,2}'::smallint[]) as p(priority),
        lateral (select q.ctid as tid, q.notification_id, q.fence, q.run_id, q.claimed_at from fencepost.queue q
                  where q.channel = w.channel and q.priority = p.priority and q.due_at <= v_now and q.due_at >= v_starts[w.ord * 3 - 2 + p.priority]
                    and (q.lease_until <= v_now or q.lease_until > v_now + fencepost.longest_lease())
                  order by q.due_at limit w.lim for update skip locked) s limit w.lim) s),
  u as (update fencepost.queue q
           set fence = q.fence + 1, run_id = p_run, claimed_at = v_now, lease_until = v_now + least(p_lease, fencepost.longest_lease()),
               attempts = least(q.attempts + 1, 32767), interruptions = least(q.interruptions + (q.run_id <> fencepost.nobody())::int, 32767),
               doubt = q.doubt or q.run_id <> fencepost.nobody()
         where q.ctid = any(array(select c.tid from c))
        returning q.notification_id, q.fence, q.channel, q.priority, q.due_at, q.attempts, q.interruptions, q.doubt, q.resend)
  select u.*, g.*, o.* into ids, fences, attempts, interruptions, doubts, resends, g_places, g_dues, g_taken, o_ids, o_fences, o_runs, o_claimed
    from (select coalesce(array_agg(u.notification_id), '{}'), coalesce(array_agg(u.fence), '{}'),
                 array_agg(u.attempts), array_agg(u.interruptions), array_agg(u.doubt), array_agg(u.resend) from u) u,
         (select array_agg(array_position(c_channels, g.channel) * 3 - 2 + g.priority), array_agg(g.due_at), array_agg(g.taken)
            from (select u.channel, u.priority, max(u.due_at) as due_at, count(*)::int as taken from u group by u.channel, u.priority) g) g,
         (select array_agg(c.notification_id), array_agg(c.fence), array_agg(c.run_id), array_agg(c.claimed_at) from c where c.run_id <> fencepost.nobody()) o;
  if o_ids is not null then perform fencepost.take_over_(p_run, o_ids, o_fences, o_runs, o_claimed); end if;
  if v_allowed.rated and g_places is not null then
    update fencepost.channel k set tokens = fencepost.tokens_(k, v_now) - n.taken, filled_at = v_now
      from (select c_channels[(g.place + 2) / 3] as channel, sum(g.taken) as taken from unnest(g_places, g_taken) as g(place, taken) group by 1) n where k.id = any(array[n.channel]) and k.rate is not null;
  end if;
  v_hints := fencepost.hints_(p_hinted, p_hints, c_channels, v_allowed.limits, g_places, g_dues, g_taken);
  hinted := v_hints.hinted;
  hints := v_hints.hints;
end $f$;

-- A name that is no channel's is a slip in the settings: a run that looked past it would be idle for ever and say nothing.
create function fencepost.check_channels_(p_channels text[]) returns void language plpgsql stable as $f$
declare v_unknown text;
begin
  select string_agg(w.name, ', ') into v_unknown from unnest(p_channels) as w(name) where not exists (select 1 from fencepost.channel c where c.name = w.name);
  if v_unknown is not null then
    raise exception 'FENCEPOST_CHANNELS names channels that are not in this database: %', left(v_unknown, 200) using errcode = 'FP001';
  end if;
end $f$;

-- Whether a claim would find something now: its own predicate, gates included. No names: all channels. Reads only. Refuses as start_run would.
create function fencepost.has_work(p_channels text[]) returns boolean language plpgsql stable security definer
set search_path = pg_catalog, pg_temp set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off as $f$
declare v_now timestamptz := fencepost.now_(); v_all boolean := coalesce(cardinality(p_channels), 0) = 0;
begin
  if not v_all then perform fencepost.check_channels_(p_channels); end if;
  return exists (
    select 1 from fencepost.channel c, unnest('{0,1,2}'::smallint[]) as p(priority),
      lateral (select 1 from fencepost.queue q
                where q.channel = c.id and q.priority = p.priority and q.due_at <= v_now
                  and (q.lease_until <= v_now or q.lease_until > v_now + fencepost.longest_lease()) order by q.due_at limit 1) q
     where (v_all or c.name = any(p_channels)) and c.paused_until <= v_now and (c.rate is null or fencepost.tokens_(c, v_now) >= 1));
end $f$;
