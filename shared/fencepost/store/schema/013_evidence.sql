-- Evidence: a fact about a send learnt outside its lease: a late word of a run, a provider's callback, an operator's word. Nothing is too late
-- for it, and saying it twice is harmless. Written down first, then it acts:
--   delivered, at any fence    the notification closes as delivered; a leased one is closed by its holder's next word
--   not delivered              once no attempt is in doubt any more: an open row loses its doubt and is due now, a held one opens again, or is dead if any was rejected
-- Order of locks: queue rows by id (an exchange has them already), then notifications by id (redrive moves rows from closed to queue).

-- In doubt: an attempt whose outcome is unknown and of which no evidence says that it was not delivered. A run's evidence speaks for its own attempt only.
create function fencepost.doubtful_(p_id bigint) returns boolean language plpgsql stable as $f$
begin
  return (select 1 from (select a.fence, a.run_id from fencepost.attempt a where a.notification_id = p_id and a.outcome = 'uncertain'
                         union all
                         select c.fence, c.run_id from fencepost.closed c where c.notification_id = p_id and c.outcome = 'uncertain') a
           where (select 1 from fencepost.evidence e where e.notification_id = p_id and e.fence = a.fence and e.run_id in (a.run_id, fencepost.nobody())
                     and e.outcome in ('rejected', 'failed', 'not_sent') limit 1) is null limit 1) is not null;
end $f$;

-- closed -> queue. The fence is raised, the closing attempt moves to where the others are, and what evidence has not cleared stays in doubt.
create function fencepost.reopen_(p_ids bigint[], p_kinds fencepost.kind[], p_what text, p_who text, p_why text) returns bigint[] language plpgsql as $f$
declare v_ids bigint[]; v_fresh boolean := p_what like 'redrive%';
begin
  with d as (delete from fencepost.closed c where c.notification_id = any(p_ids) and c.kind = any(p_kinds) returning c.*),
  a as (insert into fencepost.attempt (notification_id, fence, run_id, claimed_at, at, took_ms, status, outcome, phase, digest, reference, detail)
        select d.notification_id, d.fence, d.run_id, d.claimed_at, d.closed_at, d.took_ms, d.status, d.outcome, d.phase, d.digest, d.reference,
               left(nullif(concat_ws(': ', d.reason, d.detail), ''), 2000) from d where d.outcome is not null),
  o as (insert into fencepost.operation (notification_id, at, fence, what, was, who, why)
        select d.notification_id, fencepost.now_(), d.fence + 1, p_what, concat_ws(': ', d.kind::text, d.reason), p_who, p_why from d),
  i as (insert into fencepost.queue (notification_id, due_at, fence, channel, priority, attempts, doubt, resend)
        select d.notification_id, fencepost.now_(), d.fence + 1, n.channel, n.priority, case when v_fresh then 0 else d.attempts end,
               fencepost.doubtful_(d.notification_id), p_what = 'redrive to resend'
          from d join fencepost.notification n on n.id = any(array[d.notification_id]) returning notification_id)
  select coalesce(array_agg(i.notification_id), '{}') into v_ids from i;
  return v_ids;
end $f$;

-- Delivered: no further send. A free row and one closed as anything else become delivered.
create function fencepost.deliver_(p_ids bigint[]) returns void language plpgsql as $f$
begin
  with d as (delete from fencepost.queue q where q.notification_id = any(p_ids) and q.run_id = fencepost.nobody() returning q.*)
  insert into fencepost.closed (notification_id, closed_at, fence, kind, attempts, reason)
  select d.notification_id, fencepost.now_(), d.fence + 1, 'delivered', d.attempts, 'evidence'
    from d where (select 1 from fencepost.closed c where c.notification_id = d.notification_id) is null;
  perform fencepost.turn_(p_ids, '{dead,uncertain,expired,cancelled}', 'delivered');
end $f$;

-- A closed one becomes another kind. When it was closed, and its attempt, stay; when it turned, and what it was, is an operation.
create function fencepost.turn_(p_ids bigint[], p_from fencepost.kind[], p_to fencepost.kind) returns void language plpgsql as $f$
begin
  with c as materialized (select c.notification_id, c.fence, c.kind, c.reason from fencepost.closed c
                           where c.notification_id = any(p_ids) and c.kind = any(p_from) for update),
  u as (update fencepost.closed t set kind = p_to, reason = 'evidence' from c where t.notification_id = any(array[c.notification_id]))
  insert into fencepost.operation (notification_id, at, fence, what, was, why)
  select c.notification_id, fencepost.now_(), c.fence, 'close as ' || p_to, concat_ws(': ', c.kind::text, c.reason), 'evidence' from c;
end $f$;

-- Not delivered, and nothing in doubt any more. (The kind is a variable: the constant would invite the partial index into a cached plan.)
create function fencepost.clear_(p_ids bigint[]) returns void language plpgsql as $f$
declare v_held fencepost.kind[] := '{uncertain}'; v_clear bigint[]; v_rejected bigint[];
begin
  select array_agg(w.id) into v_clear from (select distinct w.id from unnest(p_ids) as w(id) order by w.id) w where not fencepost.doubtful_(w.id);
  if v_clear is null then return; end if;
  update fencepost.queue q set doubt = false, due_at = case when q.run_id = fencepost.nobody() then least(q.due_at, fencepost.now_()) else q.due_at end
   where q.notification_id = any(v_clear) and q.doubt;
  select array_agg(w.id) into v_rejected from unnest(v_clear) as w(id)
   where (select 1 from fencepost.evidence e where e.notification_id = w.id and e.outcome = 'rejected' limit 1) = 1;
  if v_rejected is not null then perform fencepost.turn_(v_rejected, v_held, 'dead'); end if;
  perform fencepost.reopen_(v_clear, v_held, 'reopen', null, 'evidence');
end $f$;

-- Let what is known act on these notifications.
create function fencepost.act_(p_ids bigint[]) returns void language plpgsql as $f$
declare v_yes bigint[]; v_no bigint[];
begin
  select array_agg(w.id) filter (where e.outcome = 'delivered'), array_agg(w.id) filter (where e.outcome <> 'delivered') into v_yes, v_no
    from (select distinct w.id from unnest(p_ids) as w(id) order by w.id) w,
      lateral (select e.outcome from fencepost.evidence e where e.notification_id = w.id order by e.outcome limit 1) e;
  if v_yes is not null then perform fencepost.deliver_(v_yes); end if;
  if v_no is not null then perform fencepost.clear_(v_no); end if;
end $f$;

-- Write it down, then let it act. A fence that is not known: delivered is said of the notification; anything else of every attempt in doubt.
create function fencepost.note_(p_run uuid, p_source text, p_ids bigint[], p_fences bigint[], p_outcomes fencepost.outcome[], p_references text[], p_details text[])
returns void language plpgsql as $f$
begin
  perform 1 from (select distinct w.id from unnest(p_ids) as w(id) order by w.id) w, lateral (select 1 from fencepost.queue q where q.notification_id = w.id for update) q;
  perform 1 from (select distinct w.id from unnest(p_ids) as w(id) order by w.id) w, lateral (select 1 from fencepost.notification n where n.id = w.id for no key update) n;
  insert into fencepost.evidence (notification_id, fence, run_id, source, outcome, at, reference, detail)
  select w.id, coalesce(nullif(w.fence, 0), a.fence, 0), coalesce(p_run, fencepost.nobody()), p_source, w.outcome, fencepost.now_(), left(w.reference, 500), left(w.detail, 2000)
    from unnest(p_ids, p_fences, p_outcomes, p_references, p_details) as w(id, fence, outcome, reference, detail)
    left join lateral (select a.fence from fencepost.attempt a where coalesce(w.fence, 0) = 0 and w.outcome <> 'delivered' and a.notification_id = w.id and a.outcome = 'uncertain'
                       union all
                       select c.fence from fencepost.closed c where coalesce(w.fence, 0) = 0 and w.outcome <> 'delivered' and c.notification_id = w.id and c.outcome = 'uncertain' offset 0) a on true
   where w.id is not null and w.outcome < 'uncertain' on conflict do nothing;
  perform fencepost.act_(p_ids);
end $f$;

-- Evidence from outside any run. Answers one letter a fact: A written down, C written down and a conflict (a second delivered), R known before,
-- U of a notification that is not here (written down too), - no fact (uncertain and held are none).
create function fencepost.evidence(p_source text, p_ids bigint[], p_fences bigint[], p_outcomes fencepost.outcome[], p_references text[], p_details text[]) returns text
language plpgsql security definer
set search_path = pg_catalog, pg_temp set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off as $f$
declare v_known boolean[];
begin
  select array_agg((select 1 from fencepost.evidence e where e.notification_id = w.id and (e.fence = w.fence or coalesce(w.fence, 0) = 0) and e.run_id = fencepost.nobody()
                       and e.source = p_source and e.outcome = w.outcome limit 1) is not null order by w.ord)
    into v_known from unnest(p_ids, p_fences, p_outcomes) with ordinality as w(id, fence, outcome, ord);
  perform fencepost.note_(null, p_source, p_ids, p_fences, p_outcomes, p_references, p_details);
  return (select coalesce(string_agg(case
      when w.id is null or w.outcome is null or w.outcome >= 'uncertain' then '-'
      when (select 1 from fencepost.notification n where n.id = w.id) is null then 'U'
      when v_known[w.ord] then 'R'
      when w.outcome = 'delivered' and w.fence > 0 and fencepost.delivered_elsewhere_(w.id, w.fence, fencepost.sent_by_(w.id, w.fence)) then 'C'
      else 'A' end, '' order by w.ord), '')
    from unnest(p_ids, p_fences, p_outcomes) with ordinality as w(id, fence, outcome, ord));
end $f$;

-- Whose attempt a fence was, as far as is known: a callback knows the fence, not the run.
create function fencepost.sent_by_(p_id bigint, p_fence bigint) returns uuid language plpgsql stable as $f$
begin
  return coalesce((select a.run_id from fencepost.attempt a where a.notification_id = p_id and a.fence = p_fence),
                  (select c.run_id from fencepost.closed c where c.notification_id = p_id and c.fence = p_fence and c.outcome is not null), fencepost.nobody());
end $f$;
