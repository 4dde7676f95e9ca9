-- The exchange: all words between a run and the database in one call, one round trip, one transaction.
-- Words are fenced and may be said again at any time; seq makes only the claim repeatable:
--   new seq: claim · same seq: the rows of the last claim that are still ours · older seq: no claim
-- An ended or unknown run is not refused: it leaves what it knows as evidence, and gets nothing.
--
-- The pins (`set …` below) are part of correctness. Plans are made once a session, often while the tables are empty, and must be right a
-- million rows later: generic, by key, nested loops. They price a sort at 1e10, so without `jit = off` every call would be compiled.
-- They hold for the steps called from here; nobody may call a step by itself.

-- Renew. Answers the places of the words that found nothing: those leases are lost.
create function fencepost.renew_(p_run uuid, p_lease interval, r_ids bigint[], r_fences bigint[]) returns int[] language plpgsql as $f$
declare v_lost int[];
begin
  if coalesce(cardinality(r_ids), 0) = 0 then return '{}'; end if;
  with w as materialized (select w.*, p_run as run from unnest(r_ids, r_fences) with ordinality as w(id, fence, ord) order by w.id),
  u as (update fencepost.queue q set lease_until = fencepost.now_() + least(p_lease, fencepost.longest_lease()) from w
         where q.notification_id = any(array[w.id]) and q.fence = w.fence and q.run_id = w.run
        returning w.ord)
  select coalesce(array_agg(w.ord::int order by w.ord), '{}') into v_lost from w where w.ord not in (select u.ord from u);
  return v_lost;
end $f$;

-- Pause channels by what a run learnt, under the revision it learnt it: a stale run cannot pause a channel that was repaired since.
-- Answers the channels that were busy: nothing was written there, say it again.
create function fencepost.pause_(g_channels smallint[], g_revisions int[], g_pauses float8[], g_reasons text[]) returns smallint[] language plpgsql as $f$
declare v_busy smallint[];
begin
  with w as materialized (
    select w.channel, w.revision, fencepost.now_() + least(w.pause, 86400) * interval '1 s' as until, w.reason
      from unnest(g_channels, g_revisions, g_pauses, g_reasons) as w(channel, revision, pause, reason) where w.pause > 0),
  k as materialized (select c.id from fencepost.channel c where c.id in (select w.channel from w) for update skip locked),
  u as (update fencepost.channel c set paused_until = w.until, pause_reason = left(w.reason, 500)
          from w join k on k.id = w.channel where c.id = any(array[k.id]) and c.revision = w.revision and c.paused_until < w.until)
  select coalesce(array_agg(distinct w.channel), '{}') into v_busy from w where w.channel not in (select k.id from k);
  perform fencepost.withhold_(w.channel) from unnest(g_channels, g_reasons) as w(channel, reason) where w.reason like 'unregistered:%';
  return v_busy;
end $f$;

-- What each channel spoken of allows now. One that was busy is missing.
create function fencepost.gates_(p_channels smallint[], p_busy smallint[]) returns jsonb language plpgsql as $f$
declare v_now timestamptz := fencepost.now_(); v_gates jsonb;
begin
  select jsonb_object_agg(c.id, jsonb_build_object(
           'revision', c.revision, 'reason', case when c.paused_until > v_now then c.pause_reason end,
           'paused_for', case when c.paused_until > v_now then date_part('epoch', least(c.paused_until, v_now + interval '1 day')) - date_part('epoch', v_now) else 0 end,
           'token_in', case when c.rate is null then 0 else greatest(0, 1 - fencepost.tokens_(c, v_now)) / c.rate end))
    into v_gates from fencepost.channel c where c.id = any(p_channels) and c.id <> all(p_busy);
  return v_gates;
end $f$;

-- What a run that ends still holds: what it names, and its last claim. (No index leads from a run to its rows: it would cost the HOT claim.)
-- Never heard of (the claim's answer was lost): it cannot have been sent, so it is released. Heard of and not settled: in doubt, as by a takeover.
create function fencepost.give_up_(p_run uuid, p_ids bigint[], p_unheard boolean) returns void language plpgsql as $f$
begin
  with w as materialized (select distinct w.id, p_run as run from unnest(p_ids) as w(id) order by w.id),
  u as (update fencepost.queue q
           set lease_until = '-infinity', run_id = fencepost.nobody(), attempts = greatest(q.attempts - p_unheard::int, 0), doubt = q.doubt or not p_unheard
          from w where q.notification_id = any(array[w.id]) and q.run_id = w.run
        returning q.notification_id, q.fence, q.claimed_at)
  insert into fencepost.attempt (notification_id, fence, run_id, claimed_at, at, outcome, taken_over)
  select u.notification_id, u.fence, p_run, u.claimed_at, fencepost.now_(), 'uncertain', true
    from u where not p_unheard and (select 1 from fencepost.attempt a where a.notification_id = u.notification_id and a.fence = u.fence) is null;
  -- What is known already decides at once: delivered closes, not delivered takes the doubt away again.
  if not p_unheard and cardinality(p_ids) > 0 then perform fencepost.act_(p_ids); end if;
end $f$;

-- What a run came to, added up from what was said: written once, by its last exchange.
create function fencepost.counts_(p_run uuid) returns jsonb language plpgsql as $f$
begin
  return (select jsonb_build_object(
      'exchanges', count(*), 'claimed', coalesce(sum(cardinality(j.claimed)), 0), 'renewed', coalesce(sum(cardinality(j.renewed)), 0), 'lost', coalesce(sum(cardinality(j.lost)), 0),
      'applied', coalesce(sum(length(j.verdicts) - length(replace(j.verdicts, 'A', ''))), 0), 'repeated', coalesce(sum(length(j.verdicts) - length(replace(j.verdicts, 'R', ''))), 0),
      'late', coalesce(sum(length(j.verdicts) - length(replace(j.verdicts, 'L', ''))), 0), 'conflict', coalesce(sum(length(j.verdicts) - length(replace(j.verdicts, 'C', ''))), 0),
      'unknown', coalesce(sum(length(j.verdicts) - length(replace(j.verdicts, 'U', ''))), 0))
    from fencepost.journal j where j.run_id = p_run);
end $f$;

-- What is known of the earlier attempts of claimed rows: nothing of those whose first fence it is. Instants are seconds since the epoch.
create function fencepost.known_(p_ids bigint[], p_fences bigint[], p_doubts boolean[], out redriven float8[], out first float8[], out doubt float8[],
  out digests bytea[], out evidence fencepost.outcome[]) language plpgsql as $f$
begin
  select array_agg(k.redriven order by k.ord), array_agg(k.first order by k.ord), array_agg(k.doubt order by k.ord), array_agg(k.digest order by k.ord), array_agg(k.evidence order by k.ord)
    into redriven, first, doubt, digests, evidence
    from (select c.ord,
        case when c.fence > 1 then (select max(date_part('epoch', o.at)) from fencepost.operation o where o.notification_id = c.id and o.what like 'redrive%') end as redriven,
        case when c.fence > 1 then (select min(date_part('epoch', a.claimed_at)) from fencepost.attempt a
                                     where a.notification_id = c.id and a.outcome not in ('not_sent', 'held')) end as first,
        case when c.doubt then (select max(date_part('epoch', a.claimed_at)) from fencepost.attempt a where a.notification_id = c.id and a.outcome = 'uncertain') end as doubt,
        case when c.fence > 1 then (select a.digest from fencepost.attempt a
                                     where a.notification_id = c.id and a.outcome not in ('not_sent', 'held') and a.digest is not null order by a.fence limit 1) end as digest,
        case when c.fence > 1 then (select e.outcome from fencepost.evidence e where e.notification_id = c.id order by e.outcome limit 1) end as evidence
      from unnest(p_ids, p_fences, p_doubts) with ordinality as c(id, fence, doubt, ord)) k;
end $f$;

-- First row of the answer: verdicts, lost, gates. Further rows: what was claimed.
create function fencepost.exchange(
  p_run uuid, p_seq int, p_lease float8, p_last boolean,
  s_ids bigint[], s_fences bigint[], s_outcomes fencepost.outcome[], s_kinds fencepost.kind[], s_delays float8[], s_reasons text[],              -- settle:
  s_phases fencepost.phase[], s_statuses smallint[], s_references text[], s_digests bytea[], s_took int[], s_details text[],                     -- and its facts
  r_ids bigint[], r_fences bigint[],                                                                                                           -- renew
  g_channels smallint[], g_revisions int[], g_pauses float8[], g_reasons text[],                                                               -- gates; pause null: only ask
  c_channels smallint[], c_limits int[], c_hinted boolean[])                                                                                   -- claim
returns table (verdicts text, lost int[], gates jsonb,
  id bigint, fence bigint, channel smallint, attempts smallint, interruptions smallint, doubt boolean, age float8, first_age float8, doubt_age float8, first_digest bytea,
  evidence fencepost.outcome, expires_in float8, lease_left float8, recipient text, payload jsonb, idempotency_key uuid, on_uncertain text, resend_ordered boolean)
language plpgsql security definer
set search_path = pg_catalog, pg_temp set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off as $f$
#variable_conflict use_column
declare
  v_run record; v_turn record; v_seq int; v_new boolean := false; v_lease interval; v_claimed record; v_hinted smallint[]; v_hints timestamptz[]; v_said boolean;
  v_claim bigint[] := '{}'; v_fences bigint[]; v_attempts smallint[]; v_interruptions smallint[]; v_doubts boolean[]; v_resends boolean[]; v_until timestamptz[];
  k_redriven float8[]; k_first float8[]; k_doubt float8[]; k_digests bytea[]; k_evidence fencepost.outcome[];
  v_verdicts text; v_lost int[]; v_busy smallint[] := '{}'; v_taking smallint[] := '{}'; v_alive boolean; v_now float8 := date_part('epoch', fencepost.now_());
  v_lease_left float8 := date_part('epoch', least(least(greatest(p_lease, 0), 86400) * interval '1 s', fencepost.longest_lease()));
begin
  -- One exchange of a run at a time. Its last turn is read after the lock: its row is written once, so that no dead versions lie on the way.
  select r.id, r.seq into v_run from fencepost.run r where r.id = p_run and r.ended_at is null for update;
  v_alive := v_run.id is not null;
  v_lease := least(greatest(p_lease, 0), 86400) * interval '1 s';
  select j.seq, j.claimed, j.hinted, j.hints into v_turn from fencepost.journal j where j.run_id = v_run.id and j.seq > v_run.seq and j.claimed is not null order by j.seq desc limit 1;
  v_seq := coalesce(v_turn.seq, v_run.seq);
  v_hinted := v_turn.hinted;
  v_hints := v_turn.hints;

  if v_alive and not p_last and coalesce(cardinality(r_ids), 0) = 0 then
    v_verdicts := fencepost.settle_plain_(p_run, s_ids, s_fences, s_outcomes, s_kinds, s_reasons, s_phases, s_statuses, s_references, s_digests, s_took, s_details);
  end if;
  if v_verdicts is null then
    -- One order for everybody: all queue rows spoken of, by id, whoever holds them. After this nothing waits for a leased row.
    perform 1 from (select distinct w.id from unnest(s_ids || r_ids || case when p_last then v_turn.claimed end) as w(id) order by w.id) w,
      lateral (select 1 from fencepost.queue q where q.notification_id = w.id for update) q;
    v_verdicts := fencepost.settle_(p_run, v_alive, s_ids, s_fences, s_outcomes, s_kinds, s_delays, s_reasons, s_phases, s_statuses, s_references, s_digests, s_took, s_details);
  end if;
  v_lost := fencepost.renew_(v_run.id, v_lease, r_ids, r_fences);
  if v_alive and cardinality(g_channels) > 0 then v_busy := fencepost.pause_(g_channels, g_revisions, g_pauses, g_reasons); end if;

  if v_alive and p_last then
    perform fencepost.give_up_(p_run, r_ids, false);
    perform fencepost.give_up_(p_run, v_turn.claimed, p_seq = v_seq);                                       -- same seq: the answer with this claim was never heard
  elsif v_alive and p_seq > v_seq then
    v_new := true;
    if cardinality(c_channels) > 0 then
      v_claimed := fencepost.claim_(p_run, v_lease, v_hinted, v_hints, c_channels, c_limits, c_hinted);
      v_claim := v_claimed.ids; v_fences := v_claimed.fences; v_attempts := v_claimed.attempts; v_interruptions := v_claimed.interruptions; v_doubts := v_claimed.doubts;
      v_resends := v_claimed.resends; v_hinted := v_claimed.hinted; v_hints := v_claimed.hints; v_taking := v_claimed.busy;
    end if;
  elsif v_alive and p_seq = v_seq then                                                                      -- said again: those that are still ours
    select coalesce(array_agg(q.notification_id), '{}'), array_agg(q.fence), array_agg(q.attempts), array_agg(q.interruptions), array_agg(q.doubt), array_agg(q.resend),
           array_agg(q.lease_until)
      into v_claim, v_fences, v_attempts, v_interruptions, v_doubts, v_resends, v_until
      from unnest(v_turn.claimed) as c(id) join fencepost.queue q on q.notification_id = any(array[c.id]) and q.run_id = p_run;
  end if;

  v_said := coalesce(cardinality(s_ids), 0) + coalesce(cardinality(r_ids), 0) + case when v_new then cardinality(v_claim) else 0 end > 0;
  if v_said then
    insert into fencepost.journal (run_id, seq, at, verdicts, settled, settled_fences, renewed, lost, claimed, claimed_fences, hinted, hints)
    values (p_run, p_seq, fencepost.now_(), v_verdicts, s_ids, s_fences, r_ids, (select array_agg(r_ids[o]) from unnest(v_lost) as o),
            case when v_new then v_claim end, case when v_new then v_fences end, v_hinted, v_hints);
  end if;
  if v_alive and p_last then
    update fencepost.run r set seq = greatest(p_seq, v_seq), seen_at = fencepost.now_(), ended_at = fencepost.now_(), counts = fencepost.counts_(p_run) where r.id = v_run.id;
  elsif v_new and not v_said then
    update fencepost.run r set seq = p_seq, seen_at = fencepost.now_() where r.id = v_run.id;
  end if;

  verdicts := v_verdicts; lost := v_lost; gates := fencepost.gates_(g_channels || c_channels, v_busy || v_taking);
  return next;
  if cardinality(v_claim) > 0 then
    if 1 < any(v_fences) then
      select k.redriven, k.first, k.doubt, k.digests, k.evidence into k_redriven, k_first, k_doubt, k_digests, k_evidence from fencepost.known_(v_claim, v_fences, v_doubts) k;
    end if;
    return query
      select null::text, null::int[], null::jsonb, c.id, v_fences[c.ord], n.channel, v_attempts[c.ord], v_interruptions[c.ord], v_doubts[c.ord],
             -- how old it is since it was due, or since an operator last gave it another life
             v_now - greatest(date_part('epoch', n.due_at), k_redriven[c.ord]), v_now - k_first[c.ord], v_now - k_doubt[c.ord], k_digests[c.ord], k_evidence[c.ord],
             date_part('epoch', n.expires_at) - v_now, coalesce(date_part('epoch', v_until[c.ord]) - v_now, v_lease_left), n.recipient, n.payload, n.idempotency_key,
             n.on_uncertain, v_resends[c.ord]
        from unnest(v_claim) with ordinality as c(id, ord)
        left join lateral (select * from fencepost.notification n where n.id = c.id offset 0) n on true;
  end if;
end $f$;
