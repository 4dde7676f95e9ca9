-- Receipts: a provider that first accepts a message and tells later, by its id, what became of it. Such a notification closes as delivered with the
-- reason receipt_due. The reason says where it stands, and when it is asked about: at most three times, each time whatever came of the time before.
--   receipt_due      asked a quarter of an hour after it closed
--   receipt_late     … and after two hours
--   receipt_last     … and after 22 hours: Expo forgets them after a day
--   receipt_missing  there was none
--   receipt_refused, receipt_unknown, null    there was one: not delivered, nobody knows, delivered
-- It moves on before it is asked about: two runs do not ask about the same, a run that dies in between loses one question, and what is never
-- answered holds up nobody. The answer is evidence of the closing attempt; it opens nothing again.

create index closed_receipt on fencepost.closed (reason, closed_at) where reason in ('receipt_due', 'receipt_late', 'receipt_last');

-- Those to be asked about now, of these channels (none named: all), oldest first, p_limit of each reason at most. What another run takes just now is left
-- to it. What is older than a day is given up, as many a call.
create function fencepost.take_receipts(p_channels text[], p_limit int) returns table (id bigint, fence bigint, channel smallint, reference text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off as $f$
#variable_conflict use_column
declare
  v_now timestamptz := fencepost.now_(); v_all boolean := coalesce(cardinality(p_channels), 0) = 0; v_limit int := least(greatest(p_limit, 1), 1000);
begin
  with g as materialized (
    select k.tid from unnest('{receipt_due,receipt_late,receipt_last}'::text[]) as r(was),
      lateral (select c.ctid as tid from fencepost.closed c
                where c.reason in ('receipt_due', 'receipt_late', 'receipt_last') and c.reason = r.was and c.closed_at < v_now - interval '1 day'
                order by c.closed_at limit v_limit for update skip locked) k)
  update fencepost.closed c set reason = 'receipt_missing' from g where c.ctid = g.tid;
  return query
  with t as materialized (
    select k.*, r.becomes
      from unnest('{receipt_due,receipt_late,receipt_last}'::text[], '{receipt_late,receipt_last,receipt_missing}'::text[], '{15 min,2 h,22 h}'::interval[])
             as r(was, becomes, after),
        lateral (select c.notification_id, n.channel from fencepost.closed c,
                   lateral (select n.channel from fencepost.notification n, fencepost.channel h
                             where n.id = c.notification_id and h.id = n.channel and (v_all or h.name = any(p_channels)) offset 0) n
                  where c.reason in ('receipt_due', 'receipt_late', 'receipt_last') and c.reason = r.was
                    and c.closed_at between v_now - interval '1 day' and v_now - r.after
                  order by c.closed_at limit v_limit for update of c skip locked) k),
  u as (update fencepost.closed c set reason = t.becomes from t where c.notification_id = any(array[t.notification_id])
        returning c.notification_id, c.fence, t.channel, c.reference)
  select u.notification_id, u.fence, u.channel, u.reference from u;
end $f$;

-- These channels as start_run() tells them, for whoever asks without a run.
create function fencepost.receipt_channels(p_ids smallint[])
returns table (id smallint, name text, sender text, settings jsonb, secret_reference text, slots smallint, rate float8, on_uncertain text, policy jsonb,
               revision int, paused_for float8, pause_reason text, skipped text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $f$
  select c.id, c.name, c.sender, c.settings, c.secret_reference, c.slots, c.rate, c.on_uncertain, c.policy, c.revision,
         greatest(date_part('epoch', least(c.paused_until, fencepost.now_() + interval '1 day')) - date_part('epoch', fencepost.now_()), 0),
         case when c.paused_until > fencepost.now_() then c.pause_reason end, case when c.skip_revision = c.revision then c.skip_reason end
    from fencepost.channel c where c.id = any(p_ids) $f$;

create function fencepost.pause_by_receipts_(p_places int[], p_ids bigint[], p_details text[], p_pauses float8[]) returns void language plpgsql as $f$
begin
  with w as materialized (
    select n.channel, max(c.closed_at) as closed_at, max(p_pauses[o]) as pause, max(p_details[o]) as why
      from unnest(p_places) as o, lateral (select c.closed_at from fencepost.closed c where c.notification_id = p_ids[o] offset 0) c,
        lateral (select n.channel from fencepost.notification n where n.id = p_ids[o] offset 0) n
     where p_pauses[o] > 0 group by n.channel),
  k as materialized (
    select c.id, fencepost.now_() + least(w.pause, 86400) * interval '1 s' as until, w.why from w, fencepost.channel c
     where c.id = w.channel and c.revised_at < w.closed_at for update of c skip locked)
  update fencepost.channel c set paused_until = k.until, pause_reason = left('credentials: ' || k.why, 500) from k where c.id = k.id and c.paused_until < k.until;
end $f$;

-- The answers. Outcome null: the provider does not know. Reason: what stands at the notification from now on. Gone: the recipient is.
-- Pause: so many seconds, where it tells that the channel's credentials at its provider are wrong. An operator's change since the message was accepted may
-- have mended that: then it pauses nothing. A channel's row that is busy is left alone: the next receipt says it again.
-- Only for what still waits for one: said twice is said once. Order of locks: notifications, then what is closed. Answers how many it took.
create function fencepost.tell_receipts(p_ids bigint[], p_fences bigint[], p_references text[], p_outcomes fencepost.outcome[], p_reasons text[], p_details text[],
  p_gone boolean[], p_gone_ats float8[], p_guarded boolean[], p_pauses float8[]) returns int language plpgsql security definer
set search_path = pg_catalog, pg_temp set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off as $f$
declare v_places int[]; v_gone int[];
begin
  perform 1 from (select distinct w.id from unnest(p_ids) as w(id) order by w.id) w, lateral (select 1 from fencepost.notification n where n.id = w.id for no key update) n;
  select array_agg(w.ord::int), array_agg(w.ord::int) filter (where w.gone) into v_places, v_gone
    from unnest(p_ids, p_fences, p_gone) with ordinality as w(id, fence, gone, ord),
      lateral (select 1 from fencepost.closed c where c.notification_id = w.id and c.fence = w.fence and c.reason in ('receipt_due', 'receipt_late', 'receipt_last', 'receipt_missing')
                limit 1) c;
  if v_places is null then return 0; end if;
  perform fencepost.note_(null, 'callback', array_agg(p_ids[o]), array_agg(p_fences[o]), array_agg(p_outcomes[o]), array_agg(p_references[o]), array_agg(p_details[o]))
     from unnest(v_places) as o;
  if v_gone is not null then
    perform fencepost.note_unregistered_(array_agg(p_ids[o]), array_agg(p_fences[o]), array_agg(to_timestamp(p_gone_ats[o])), array_agg(p_guarded[o]), array_agg(p_details[o]))
       from unnest(v_gone) as o;
  end if;
  if exists (select 1 from unnest(v_places) as o where p_pauses[o] > 0) then perform fencepost.pause_by_receipts_(v_places, p_ids, p_details, p_pauses); end if;
  update fencepost.closed c set reason = left(w.reason, 200)
    from (select p_ids[o] as id, p_reasons[o] as reason from unnest(v_places) as o) w where c.notification_id = any(array[w.id]);
  return cardinality(v_places);
end $f$;
