-- Settle: what a run says about the rows it holds. A word is (id, fence, outcome, kind, delay) and what the attempt leaves in the ledger:
--   kind given        closes as that kind; the attempt is stored inside `closed`, once
--   kind null         open again after the delay (none: when it was due)
--   outcome null      nothing was begun: no attempt, the attempt is refunded; `not_sent` is an attempt, and refunded too
-- A word holds if (id, fence, run) still hold: also after the lease ran out, while nobody has taken the row over: the message was sent.
-- Verdicts, one letter a word: A applied, R repeated, L late, C conflict, U unknown. What L, C and U know becomes evidence (013_evidence.sql).
-- The caller has locked every row spoken of. What others know about a send is read only after that lock, or it would be missed.

-- Which of these were delivered already by another attempt, as evidence says? A first attempt that was delivered need not look.
create function fencepost.delivered_before_(p_run uuid, s_ids bigint[], s_fences bigint[], s_outcomes fencepost.outcome[]) returns bigint[] language plpgsql as $f$
declare v_ids bigint[];
begin
  select coalesce(array_agg(w.id), '{}') into v_ids
    from unnest(s_ids, s_fences, s_outcomes) as w(id, fence, outcome),
      lateral (select 1 from fencepost.evidence e
                where (w.fence > 1 or w.outcome is distinct from 'delivered') and e.notification_id = w.id and e.outcome = 'delivered'
                  and (w.outcome is distinct from 'delivered' or e.fence not in (w.fence, 0) or e.run_id not in (p_run, fencepost.nobody())) limit 1) e;
  return v_ids;
end $f$;

-- The words that close. A row that is in `closed` already (put back by hand, counters lost) leaves the queue as a conflict, not as an error
-- that would sink its batch: the primary key is probed first, and refuses whoever forgets to.
create function fencepost.close_(p_run uuid, p_delivered bigint[], s_ids bigint[], s_fences bigint[], s_outcomes fencepost.outcome[], s_kinds fencepost.kind[],
  s_reasons text[], s_phases fencepost.phase[], s_statuses smallint[], s_references text[], s_digests bytea[], s_took int[], s_details text[],
  out done bigint[], out twice bigint[]) language plpgsql as $f$
declare v_now timestamptz := fencepost.now_(); v_new bigint[];
begin
  twice := '{}';
  with w as materialized (
    select w.*, p_run as run, case when w.id = any(p_delivered) then 'delivered' else w.kind end as closes, coalesce(w.outcome = 'not_sent', true)::int as refund
      from unnest(s_ids, s_fences, s_outcomes, s_kinds, s_reasons, s_phases, s_statuses, s_references, s_digests, s_took, s_details)
           with ordinality as w(id, fence, outcome, kind, reason, phase, status, reference, digest, took_ms, detail, ord) order by w.id, w.ord),
  d as (delete from fencepost.queue q using w
         where q.notification_id = any(array[w.id]) and q.fence = w.fence and q.run_id = w.run and w.closes is not null
        returning q.claimed_at, greatest(q.attempts - w.refund, 0) as attempts, w.*),
  k as (insert into fencepost.closed (notification_id, closed_at, claimed_at, fence, run_id, attempts, took_ms, status, kind, outcome, phase, digest, reference, reason, detail)
        select d.id, v_now, d.claimed_at, d.fence, p_run, d.attempts, d.took_ms, d.status, d.closes, d.outcome, d.phase, d.digest, left(d.reference, 500),
               case when d.id <> all(p_delivered) then left(d.reason, 200) when d.outcome = 'delivered' then 'conflict' else 'evidence' end, left(d.detail, 2000)
          from d where (select 1 from fencepost.closed c where c.notification_id = d.id) is null
        returning notification_id)
  select coalesce(array_agg(d.ord), '{}'), (select array_agg(k.notification_id) from k) into done, v_new from d;
  if cardinality(p_delivered) > 0 or cardinality(v_new) is distinct from nullif(cardinality(done), 0) then       -- a second delivered, or a second close
    select coalesce(array_agg(o), '{}') into twice from unnest(done) as o
     where (s_ids[o] = any(p_delivered) and s_outcomes[o] = 'delivered') or s_ids[o] <> all(coalesce(v_new, '{}'));
  end if;
end $f$;

-- The words that leave a row open. Doubt is set here and never cleared.
create function fencepost.free_(p_run uuid, s_ids bigint[], s_fences bigint[], s_outcomes fencepost.outcome[], s_kinds fencepost.kind[], s_delays float8[],
  s_reasons text[], s_phases fencepost.phase[], s_statuses smallint[], s_references text[], s_digests bytea[], s_took int[], s_details text[]) returns bigint[] language plpgsql as $f$
declare v_now timestamptz := fencepost.now_(); v_done bigint[];
begin
  with w as materialized (
    select w.*, p_run as run, coalesce(w.outcome = 'not_sent', true)::int as refund
      from unnest(s_ids, s_fences, s_outcomes, s_kinds, s_delays, s_reasons, s_phases, s_statuses, s_references, s_digests, s_took, s_details)
           with ordinality as w(id, fence, outcome, kind, delay, reason, phase, status, reference, digest, took_ms, detail, ord)
     where w.kind is null order by w.id, w.ord),
  u as (update fencepost.queue q
           set lease_until = '-infinity', run_id = fencepost.nobody(), doubt = q.doubt or coalesce(w.outcome = 'uncertain', false),
               attempts = greatest(q.attempts - w.refund, 0),
               due_at = case when w.delay > 0 then v_now + least(w.delay, 2592000) * interval '1 s' else q.due_at end
          from w where q.notification_id = any(array[w.id]) and q.fence = w.fence and q.run_id = w.run
        returning q.claimed_at, w.*),
  a as (insert into fencepost.attempt (notification_id, fence, run_id, claimed_at, at, took_ms, status, outcome, phase, digest, reference, detail)
        select u.id, u.fence, p_run, u.claimed_at, v_now, u.took_ms, u.status, u.outcome, u.phase, u.digest, left(u.reference, 500),
               left(nullif(concat_ws(': ', u.reason, u.detail), ''), 2000)
          from u where u.outcome is not null and (select 1 from fencepost.attempt a where a.notification_id = u.id and a.fence = u.fence) is null)
  select coalesce(array_agg(u.ord), '{}') into v_done from u;
  return v_done;
end $f$;

-- Delivered by another attempt (or by another run at the same fence), as any ledger says?
create function fencepost.delivered_elsewhere_(p_id bigint, p_fence bigint, p_run uuid) returns boolean language plpgsql stable as $f$
begin
  return (select 1 from fencepost.closed c where c.notification_id = p_id and c.outcome = 'delivered' and (c.fence <> p_fence or c.run_id <> p_run) limit 1) is not null
      or (select 1 from fencepost.attempt a where a.notification_id = p_id and a.outcome = 'delivered' and (a.fence <> p_fence or a.run_id <> p_run) limit 1) is not null
      or (select 1 from fencepost.evidence e where e.notification_id = p_id and e.outcome = 'delivered'
             and (e.fence not in (p_fence, 0) or e.run_id not in (p_run, fencepost.nobody())) limit 1) is not null;
end $f$;

-- The words that found no row of theirs: said before, or too late. What they know becomes evidence; a release that came too late knows
-- that nothing was sent; uncertain and held are no news.
create function fencepost.late_(p_run uuid, s_ids bigint[], s_fences bigint[], s_outcomes fencepost.outcome[], s_references text[], s_details text[],
  p_done bigint[], p_twice bigint[]) returns text language plpgsql as $f$
declare v_verdicts text; e_ids bigint[]; e_fences bigint[]; e_outcomes fencepost.outcome[]; e_references text[]; e_details text[];
begin
  with w as materialized (
    select w.id, w.fence, w.reference, w.detail, w.ord, coalesce(w.outcome, case when a.taken_over then 'not_sent'::fencepost.outcome end) as outcome,
           case when w.ord = any(p_twice) then 'C' when w.ord = any(p_done) then 'A' when a.taken_over then 'L'
                when w.outcome is null or a.outcome = w.outcome then 'R' when a.outcome is not null then 'L' else 'U' end as verdict,
           w.ord = any(p_twice) and a.outcome is null as homeless
      from unnest(s_ids, s_fences, s_outcomes, s_references, s_details) with ordinality as w(id, fence, outcome, reference, detail, ord)
      left join lateral (select a.outcome, a.taken_over from fencepost.attempt a where a.notification_id = w.id and a.fence = w.fence and a.run_id = p_run
                         union all
                         select c.outcome, false from fencepost.closed c where c.notification_id = w.id and c.fence = w.fence and c.run_id = p_run limit 1) a on true),
  v as materialized (
    select w.*, case when w.verdict in ('L', 'U') and w.outcome = 'delivered' and fencepost.delivered_elsewhere_(w.id, w.fence, p_run) then 'C' else w.verdict end as final from w),
  e as materialized (select * from v where (v.verdict in ('L', 'U') or v.homeless) and v.outcome < 'uncertain' and v.id is not null and v.fence is not null order by v.id)
  select (select string_agg(v.final, '' order by v.ord) from v),
         array_agg(e.id), array_agg(e.fence), array_agg(e.outcome), array_agg(e.reference), array_agg(e.detail)
    into v_verdicts, e_ids, e_fences, e_outcomes, e_references, e_details from e;
  if e_ids is not null then perform fencepost.note_(p_run, 'late', e_ids, e_fences, e_outcomes, e_references, e_details); end if;
  return v_verdicts;
end $f$;

-- The plain case, nearly every exchange: every word is a first attempt that was delivered, of a row that is still this run's. It is tried at once: the
-- delete locks the rows, by id, and there is nothing to know before (54 bytes and two probes a row less). Where one row is not so, or is in `closed` already,
-- all of it is undone, the locks too, and the words go the long way. Null: undone, or not plain.
-- The index gives the rows by id, and a run says its words by id: the first row is the first word's, and so on (checked; words in another order are not plain).
-- To join what was said, eight lists of it, cost a tenth of the exchange.
create function fencepost.settle_plain_(p_run uuid, s_ids bigint[], s_fences bigint[], s_outcomes fencepost.outcome[], s_kinds fencepost.kind[],
  s_reasons text[], s_phases fencepost.phase[], s_statuses smallint[], s_references text[], s_digests bytea[], s_took int[], s_details text[]) returns text language plpgsql as $f$
declare v_now timestamptz := fencepost.now_(); v_done int;
begin
  if not coalesce(1 = all(s_fences) and 'delivered' = all(s_outcomes) and 'delivered' = all(s_kinds) and cardinality(s_ids) > 0, false) then return null; end if;    -- (nulls: a release)
  begin
    with d as (delete from fencepost.queue q where q.notification_id = any(s_ids) and q.fence = 1 and q.run_id = p_run returning q.notification_id as id, q.claimed_at, q.attempts),
    o as (select d.*, row_number() over ()::int as ord from d)
    insert into fencepost.closed (notification_id, closed_at, claimed_at, fence, run_id, attempts, took_ms, status, kind, outcome, phase, digest, reference, reason, detail)
    select o.id, v_now, o.claimed_at, 1, p_run, o.attempts, s_took[o.ord], s_statuses[o.ord], 'delivered', 'delivered', s_phases[o.ord], s_digests[o.ord],
           left(s_references[o.ord], 500), left(s_reasons[o.ord], 200), left(s_details[o.ord], 2000) from o where o.id = s_ids[o.ord];
    get diagnostics v_done = row_count;
    if v_done < cardinality(s_ids) then raise exception 'not plain' using errcode = 'FP002'; end if;
    return repeat('A', v_done);
  exception when unique_violation or sqlstate 'FP002' then return null;
  end;
end $f$;

create function fencepost.settle_(p_run uuid, p_alive boolean, s_ids bigint[], s_fences bigint[], s_outcomes fencepost.outcome[], s_kinds fencepost.kind[], s_delays float8[],
  s_reasons text[], s_phases fencepost.phase[], s_statuses smallint[], s_references text[], s_digests bytea[], s_took int[], s_details text[]) returns text language plpgsql as $f$
declare v_done bigint[] := '{}'; v_twice bigint[] := '{}'; v_unsure bigint[];
begin
  if coalesce(cardinality(s_ids), 0) = 0 then return ''; end if;
  if 'unregistered' = any(s_reasons) then                   -- also of a row that is ours no more: the provider said it
    perform fencepost.settle_unregistered_(s_ids, s_fences, s_outcomes, s_reasons, s_references, s_details);
  end if;
  if p_alive then
    select c.done, c.twice into v_done, v_twice
      from fencepost.close_(p_run, fencepost.delivered_before_(p_run, s_ids, s_fences, s_outcomes), s_ids, s_fences, s_outcomes, s_kinds,
                            s_reasons, s_phases, s_statuses, s_references, s_digests, s_took, s_details) c;
    if array_position(s_kinds, null) is not null then
      v_done := v_done || fencepost.free_(p_run, s_ids, s_fences, s_outcomes, s_kinds, s_delays, s_reasons, s_phases, s_statuses, s_references, s_digests, s_took, s_details);
    end if;
    if s_outcomes && '{uncertain,held}'::fencepost.outcome[] then           -- evidence may have answered before the doubt was told
      select array_agg(s_ids[o]) into v_unsure from unnest(v_done) as o where s_outcomes[o] in ('uncertain', 'held');
      if v_unsure is not null then perform fencepost.act_(v_unsure); end if;
    end if;
    if cardinality(v_done) = cardinality(s_ids) and cardinality(v_twice) = 0 then return repeat('A', cardinality(s_ids)); end if;
  end if;
  return fencepost.late_(p_run, s_ids, s_fences, s_outcomes, s_references, s_details, v_done, v_twice);
end $f$;
