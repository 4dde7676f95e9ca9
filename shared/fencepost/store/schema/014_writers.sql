-- The other writers: what operators do to notifications outside any run. Each raises the fence, so that no holder can write over it; each keeps the
-- one order of locks (queue rows by id, then notifications by id), reads what is known only after its locks, and leaves a row in `operation`.
-- Each answers one verdict a notification, in the order of the ids.

-- How a notification stands: open, a kind of closed, or unknown.
create function fencepost.state_(p_id bigint) returns text language plpgsql stable as $f$
begin
  return coalesce((select 'open' from fencepost.queue q where q.notification_id = p_id), (select c.kind::text from fencepost.closed c where c.notification_id = p_id), 'unknown');
end $f$;

-- Cancel what is open. A leased row may be under way: cancelling it is a takeover (its attempt becomes uncertain), and a late proof of delivery
-- still makes it delivered. Verdicts: cancelled, cancelled_leased, delivered (evidence said so already); else how it stands.
create function fencepost.cancel(p_ids bigint[], p_who text, p_why text) returns table (id bigint, verdict text) language plpgsql security definer
set search_path = pg_catalog, pg_temp set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off as $f$
#variable_conflict use_column
declare v_ids bigint[]; v_verdicts text[];
begin
  perform 1 from (select distinct w.id from unnest(p_ids) as w(id) order by w.id) w, lateral (select 1 from fencepost.queue q where q.notification_id = w.id for update) q;
  with w as materialized (select distinct w.id from unnest(p_ids) as w(id) order by w.id),
  d as (delete from fencepost.queue q using w where q.notification_id = any(array[w.id]) returning q.*, q.run_id <> fencepost.nobody() as leased),
  e as materialized (select d.*, (select e.outcome from fencepost.evidence e where e.notification_id = d.notification_id and e.outcome = 'delivered' limit 1) is not null as known from d),
  a as (insert into fencepost.attempt (notification_id, fence, run_id, claimed_at, at, outcome, taken_over)
        select d.notification_id, d.fence, d.run_id, d.claimed_at, fencepost.now_(), 'uncertain', true from d where d.leased
           and (select 1 from fencepost.attempt a where a.notification_id = d.notification_id and a.fence = d.fence) is null),
  k as (insert into fencepost.closed (notification_id, closed_at, fence, kind, attempts, reason, detail)
        select e.notification_id, fencepost.now_(), e.fence + 1, case when e.known then 'delivered'::fencepost.kind else 'cancelled' end, e.attempts,
               case when e.known then 'evidence' else 'cancelled' end, left(nullif(concat_ws(': ', p_who, p_why), ''), 2000) from e),
  o as (insert into fencepost.operation (notification_id, at, fence, what, was, who, why)
        select e.notification_id, fencepost.now_(), e.fence + 1, 'cancel', case when e.leased then 'leased' else 'waiting' end, left(p_who, 200), left(p_why, 500) from e)
  select array_agg(e.notification_id), array_agg(case when e.known then 'delivered' when e.leased then 'cancelled_leased' else 'cancelled' end) into v_ids, v_verdicts from e;
  return query select w.id, coalesce(v_verdicts[array_position(v_ids, w.id)], fencepost.state_(w.id)) from unnest(p_ids) with ordinality as w(id, ord) order by w.ord;
end $f$;

-- Open parked ones again, attempts at 0. An uncertain one must name its policy (resend), or `hold` would hold it again at the next claim.
-- Verdicts: redriven, needs_resend; else how it stands (open, delivered, …: not parked).
create function fencepost.redrive(p_ids bigint[], p_resend boolean, p_who text, p_why text) returns table (id bigint, verdict text) language plpgsql security definer
set search_path = pg_catalog, pg_temp set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off as $f$
#variable_conflict use_column
declare v_ids bigint[]; v_kinds fencepost.kind[] := case when p_resend then '{dead,uncertain}' else '{dead}' end;
begin
  perform 1 from (select distinct w.id from unnest(p_ids) as w(id) order by w.id) w, lateral (select 1 from fencepost.notification n where n.id = w.id for no key update) n;
  v_ids := fencepost.reopen_(p_ids, v_kinds, case when p_resend then 'redrive to resend' else 'redrive' end, left(p_who, 200), left(p_why, 500));
  return query
    select w.id, case when array_position(v_ids, w.id) is not null then 'redriven' when s.state = 'uncertain' then 'needs_resend' else s.state end
      from unnest(p_ids) with ordinality as w(id, ord), lateral (select fencepost.state_(w.id) as state offset 0) s order by w.ord;
end $f$;

-- An operator's word on what became of it: delivered, not_delivered (nothing in doubt any more: a held one opens again) or dead (an uncertain one is given up).
-- It is evidence like any other; but `dead` is not said of an open one: it would take its doubt away, and it would be sent again. (Whoever wants it
-- stopped cancels it.) Verdict: how it stands now.
create function fencepost.resolve(p_ids bigint[], p_outcome text, p_who text, p_why text) returns table (id bigint, verdict text) language plpgsql security definer
set search_path = pg_catalog, pg_temp set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off as $f$
#variable_conflict use_column
declare v_outcome fencepost.outcome; v_detail text := left(concat_ws(': ', p_who, p_why), 2000); v_meant bigint[]; v_n int;
begin
  v_outcome := case p_outcome when 'delivered' then 'delivered' when 'not_delivered' then 'not_sent' when 'dead' then 'rejected' end;
  if v_outcome is null then
    raise exception 'an operator resolves a notification as delivered, not_delivered or dead, not as %', left(p_outcome, 80) using errcode = 'FP001';
  end if;
  perform 1 from (select distinct w.id from unnest(p_ids) as w(id) order by w.id) w, lateral (select 1 from fencepost.queue q where q.notification_id = w.id for update) q;
  perform 1 from (select distinct w.id from unnest(p_ids) as w(id) order by w.id) w, lateral (select 1 from fencepost.notification n where n.id = w.id for no key update) n;
  select array_agg(w.id), count(*) into v_meant, v_n from unnest(p_ids) as w(id) where p_outcome <> 'dead' or fencepost.state_(w.id) <> 'open';
  if v_n > 0 then
    insert into fencepost.operation (notification_id, at, fence, what, was, who, why)
    select w.id, fencepost.now_(), coalesce(s.fence, 0), 'resolve', concat_ws(', ', fencepost.state_(w.id), 'said to be ' || p_outcome), left(p_who, 200), left(p_why, 500)
      from (select distinct w.id from unnest(v_meant) as w(id) where w.id is not null order by w.id) w
      left join lateral (select q.fence from fencepost.queue q where q.notification_id = w.id
                         union all select c.fence from fencepost.closed c where c.notification_id = w.id limit 1) s on true;
    perform fencepost.note_(null, 'operator', v_meant, array_fill(null::bigint, array[v_n]), array_fill(v_outcome, array[v_n]), array_fill(null::text, array[v_n]), array_fill(v_detail, array[v_n]));
  end if;
  return query select w.id, fencepost.state_(w.id) from unnest(p_ids) with ordinality as w(id, ord) order by w.ord;
end $f$;

-- After a restore: what is open here may have been sent in the time that was lost. A takeover of everything open: the fence raised, an uncertain
-- attempt of nobody at the new fence (it began when the row was due, as far as anyone knows), one of its holder at the old fence; doubt.
-- Answers how many.
create function fencepost.quarantine(p_who text, p_why text default null) returns bigint language plpgsql security definer
set search_path = pg_catalog, pg_temp set jit = off as $f$
declare v_count bigint;
begin
  perform 1 from fencepost.queue q order by q.notification_id for update;
  with h as (insert into fencepost.attempt (notification_id, fence, run_id, claimed_at, at, outcome, taken_over)
             select q.notification_id, q.fence, q.run_id, q.claimed_at, fencepost.now_(), 'uncertain', true from fencepost.queue q where q.run_id <> fencepost.nobody()
             on conflict do nothing),
  u as (update fencepost.queue q
           set fence = q.fence + 1, lease_until = '-infinity', run_id = fencepost.nobody(), doubt = true
        returning q.notification_id, q.fence, q.due_at),
  o as (insert into fencepost.operation (notification_id, at, fence, what, who, why)
        select u.notification_id, fencepost.now_(), u.fence, 'quarantine', left(p_who, 200), left(p_why, 500) from u),
  a as (insert into fencepost.attempt (notification_id, fence, run_id, claimed_at, at, outcome, taken_over, detail)
        select u.notification_id, u.fence, fencepost.nobody(), least(u.due_at, fencepost.now_()), fencepost.now_(), 'uncertain', true, 'quarantine' from u)
  select count(*) into v_count from u;
  return v_count;
end $f$;
