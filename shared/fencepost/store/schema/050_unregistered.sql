-- Recipients that are gone: a provider said that the address is dead. Producers poll the events and forget the address; nobody else can.
-- An event is written where the word that closes is (settle), by a stale run too, or with the evidence that tells of it (a receipt, a bounce).
-- It is told to producers only after a settling time, and only if nothing speaks against it:
--   mass       a wrong project, topic or environment looks like many dead addresses at once: none is told until an operator has looked
--   guarded    an answer that a wrong environment would give too: told only if the channel has delivered something within a day
-- It gets its place in the order of reading when it is told, under one lock held to the commit: a reader who remembers the last place misses none,
-- whatever order the transactions that wrote them committed in. The recipient stays in `notification`: one place to forget it.

create sequence fencepost.unregistered_place;
create table fencepost.unregistered (
  notification_id bigint not null,
  fence bigint not null default 0,                             -- of the attempt that told; 0: not known
  channel smallint not null,
  at timestamptz not null,
  gone_at timestamptz,                                         -- since when, where the provider says so
  guarded boolean not null default false,
  place bigint unique,                                         -- null: not told yet
  withheld text check (withheld in ('mass', 'guarded')),       -- why it is not told before an operator says so
  let_out_by text,                                             -- who said so
  why text,
  primary key (notification_id, fence));
alter sequence fencepost.unregistered_place owned by fencepost.unregistered.place;
create index unregistered_channel on fencepost.unregistered (channel, at);
create index unregistered_withheld on fencepost.unregistered (channel) where place is null and withheld is not null;
create index unregistered_new on fencepost.unregistered (at) where place is null and withheld is null;

create function fencepost.unregistered_settling_() returns interval language sql immutable as $$select interval '2 min'$$;

-- ---------------------------------------------------------------------------------------------------------------- written

-- Said twice is said once. What the ids do not lead to is nobody's.
create function fencepost.note_unregistered_(p_ids bigint[], p_fences bigint[], p_gone_ats timestamptz[], p_guarded boolean[], p_whys text[]) returns void language plpgsql as $f$
begin
  insert into fencepost.unregistered (notification_id, fence, channel, at, gone_at, guarded, why)
  select w.id, coalesce(w.fence, 0), n.channel, fencepost.now_(), w.gone_at, coalesce(w.guarded, false), left(w.why, 200)
    from (select * from unnest(p_ids, p_fences, p_gone_ats, p_guarded, p_whys) as w(id, fence, gone_at, guarded, why) order by w.id) w,
      lateral (select n.channel from fencepost.notification n where n.id = w.id offset 0) n
  on conflict do nothing;
end $f$;

-- The settle words among these that say it: of a send, or of an earlier one that the provider was asked about (nothing was begun, but there are words
-- of the provider's). The reference is what the provider said of it (core/gone.py).
create function fencepost.settle_unregistered_(s_ids bigint[], s_fences bigint[], s_outcomes fencepost.outcome[], s_reasons text[], s_references text[], s_details text[])
returns void language plpgsql as $f$
declare v_ids bigint[]; v_fences bigint[]; v_gone_ats timestamptz[]; v_guarded boolean[]; v_whys text[];
begin
  select array_agg(w.id), array_agg(w.fence), array_agg(to_timestamp(substring(w.reference from '^gone_at=([0-9]{1,10}(?:\.[0-9]{1,6})?)( guarded)?$')::float8)),
         array_agg(coalesce(w.reference like '%guarded', false)), array_agg(w.detail)
    into v_ids, v_fences, v_gone_ats, v_guarded, v_whys
    from unnest(s_ids, s_fences, s_outcomes, s_reasons, s_references, s_details) as w(id, fence, outcome, reason, reference, detail)
   where w.reason = 'unregistered' and (w.outcome = 'rejected' or w.outcome is null and w.detail is not null);
  if v_ids is not null then perform fencepost.note_unregistered_(v_ids, v_fences, v_gone_ats, v_guarded, v_whys); end if;
end $f$;

-- A run met a mass: what its channel has not told yet is not told. Waits for nobody: what is being told just now is told.
create function fencepost.withhold_(p_channel smallint) returns void language plpgsql as $f$
begin
  update fencepost.unregistered u set withheld = 'mass'
   where u.ctid = any(array(select k.ctid from fencepost.unregistered k where k.channel = p_channel and k.place is null and k.withheld is null for update skip locked));
end $f$;

-- A fact learnt outside a lease (a receipt, a bounce): evidence that it was refused for good, and the event. Answers as evidence() does.
create function fencepost.evidence_unregistered(p_source text, p_ids bigint[], p_fences bigint[], p_references text[], p_gone_ats timestamptz[], p_guarded boolean[], p_whys text[])
returns text language plpgsql security definer
set search_path = pg_catalog, pg_temp set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off as $f$
declare v_answer text;
begin
  v_answer := fencepost.evidence(p_source, p_ids, p_fences, array_fill('rejected'::fencepost.outcome, array[coalesce(cardinality(p_ids), 0)]), p_references, p_whys);
  perform fencepost.note_unregistered_(p_ids, p_fences, p_gone_ats, p_guarded, p_whys);
  return v_answer;
end $f$;

-- ---------------------------------------------------------------------------------------------------------------- told

-- How many of the latest notifications each channel delivered within a day, and how many of its last 50 were gone (of which no operator has said that it
-- is true). Looks at 5000 at most: enough to tell a channel that works from one that does not.
create function fencepost.delivered_lately_(p_now timestamptz) returns table (channel smallint, delivered bigint, gone_of_50 bigint) language plpgsql stable as $f$
begin
  return query
    select l.channel, count(*) filter (where l.kind = 'delivered' and l.closed_at > p_now - interval '1 day'),
           count(*) filter (where l.nth <= 50 and l.reason = 'unregistered'
                              and exists (select 1 from fencepost.unregistered u where u.notification_id = l.notification_id and u.let_out_by is null))
      from (select c.*, n.channel, row_number() over (partition by n.channel order by c.notification_id desc) as nth
              from (select c.notification_id, c.kind, c.reason, c.closed_at from fencepost.closed c order by c.notification_id desc limit 5000) c,
                lateral (select n.channel from fencepost.notification n where n.id = c.notification_id offset 0) n) l
     group by l.channel;
end $f$;

-- Judge what has settled: told (a place), withheld, or, guarded and not a day old, left to wait for a delivery of its channel.
-- Mass: 20 in a day of which no operator has said that they are true, and two of five outcomes or more; or of its last 50, for what a channel delivered
-- before somebody gave it a wrong project says nothing of now. (A run notices a sudden one by itself.)
create function fencepost.tell_unregistered_() returns void language plpgsql as $f$
declare v_now timestamptz := fencepost.now_();
begin
  if current_setting('transaction_read_only')::boolean or not pg_try_advisory_xact_lock(hashtextextended('fencepost.unregistered', 0)) then return; end if;
  if not exists (select 1 from fencepost.unregistered u where u.place is null and u.withheld is null and u.at <= v_now - fencepost.unregistered_settling_()) then return; end if;
  with new as materialized (
    select u.notification_id, u.fence, u.channel, u.guarded, u.at from fencepost.unregistered u
     where u.place is null and u.withheld is null and u.at <= v_now - fencepost.unregistered_settling_() order by u.at limit 10000 for update skip locked),
  channels as materialized (
    select k.channel, coalesce(d.delivered, 0) as delivered, coalesce(d.gone_of_50, 0) as gone_of_50,
           (select count(*) from fencepost.unregistered u where u.channel = k.channel and u.at > v_now - interval '1 day' and u.let_out_by is null) as gone
      from (select distinct n.channel from new n) k left join fencepost.delivered_lately_(v_now) d on d.channel = k.channel),
  judged as materialized (
    select n.*, case when k.gone >= 20 and 3 * k.gone >= 2 * k.delivered or k.gone_of_50 >= 20 then 'mass'
                     when n.guarded and k.delivered = 0 and n.at <= v_now - interval '1 day' then 'guarded'
                     when n.guarded and k.delivered = 0 then 'wait' end as verdict
      from new n join channels k on k.channel = n.channel order by n.at, n.notification_id),
  placed as materialized (select j.*, case when j.verdict is null then nextval('fencepost.unregistered_place') end as place from judged j)
  update fencepost.unregistered u set place = p.place, withheld = p.verdict
    from placed p where u.notification_id = p.notification_id and u.fence = p.fence and p.verdict is distinct from 'wait';
exception when serialization_failure then null;                               -- under REPEATABLE READ, beside another reader: the next question tells them
end $f$;

-- What a producer may act on, in the order of reading, after the last place it has dealt with. One SQL call from any language:
--   select * from fencepost.unregistered(41);
-- gone_at (null: the provider does not say): an address registered again since then is alive. Told again until the reader remembers a later place; places have gaps.
create function fencepost.unregistered(after bigint default 0, at_most int default 1000)
returns table (place bigint, notification bigint, channel text, recipient text, gone_at timestamptz, told_at timestamptz, why text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $f$
#variable_conflict use_column
begin
  perform fencepost.tell_unregistered_();
  return query
    select u.place, u.notification_id, c.name, n.recipient, u.gone_at, u.at, u.why
      from fencepost.unregistered u join fencepost.channel c on c.id = u.channel join fencepost.notification n on n.id = u.notification_id
     where u.place > coalesce(unregistered.after, 0) order by u.place limit least(greatest(coalesce(at_most, 1000), 1), 10000);
end $f$;

-- ---------------------------------------------------------------------------------------------------------------- looked at

-- For an operator, newest first. state: told, withheld (and why), waiting (not settled yet, or guarded and no delivery yet).
create function fencepost.unregistered_page(p_channel text, p_withheld boolean, p_recipient boolean, p_limit int)
returns table (id bigint, channel text, at text, state text, gone_at text, guarded boolean, why text, recipient text, told_on_word_of text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $f$
#variable_conflict use_column
begin
  perform fencepost.known_channel_(p_channel);
  return query
    select u.notification_id, c.name, fencepost.instant_(u.at),
           case when u.place is not null then 'told' when u.withheld is not null then 'withheld: ' || u.withheld else 'waiting' end,
           fencepost.instant_(u.gone_at), u.guarded, u.why, case when p_recipient then n.recipient end, u.let_out_by
      from fencepost.unregistered u join fencepost.channel c on c.id = u.channel left join fencepost.notification n on n.id = u.notification_id
     where (p_channel is null or c.name = p_channel) and (not coalesce(p_withheld, false) or (u.withheld is not null and u.place is null))
     order by u.at desc, u.notification_id desc limit least(greatest(p_limit, 1), 10000);
end $f$;

-- An operator's word on what is withheld in a channel: true (they are gone: told) or false (the channel was wrong: the events go, the attempts stay).
-- Answers how many.
create function fencepost.unregistered_resolve(p_channel text, p_true boolean, p_who text) returns int language plpgsql security definer
set search_path = pg_catalog, pg_temp set jit = off as $f$
declare v_count int; v_channel smallint;
begin
  perform fencepost.known_channel_(p_channel);
  select c.id into v_channel from fencepost.channel c where c.name = p_channel;
  if p_true then
    perform pg_advisory_xact_lock(hashtextextended('fencepost.unregistered', 0));
    with w as materialized (select u.notification_id, u.fence from fencepost.unregistered u where u.channel = v_channel and u.place is null and u.withheld is not null
                             order by u.at, u.notification_id for update)
    update fencepost.unregistered u set place = nextval('fencepost.unregistered_place'), let_out_by = left(coalesce(p_who, 'an operator'), 200)
      from w where u.notification_id = w.notification_id and u.fence = w.fence;
  else
    delete from fencepost.unregistered u where u.channel = v_channel and u.place is null and u.withheld is not null;
  end if;
  get diagnostics v_count = row_count;
  return v_count;
end $f$;

-- ---------------------------------------------------------------------------------------------------------------- kept

-- One step of prune(): events as old as the journal may be, told or not. Answers how many.
create function fencepost.prune_unregistered_(p_from timestamptz, p_limit int) returns int language plpgsql as $f$
declare v_gone int;
begin
  delete from fencepost.unregistered u
   where u.ctid = any(array(select k.ctid from fencepost.channel c,
                              lateral (select u.ctid from fencepost.unregistered u where u.channel = c.id and u.at < p_from order by u.at limit p_limit for update skip locked) k limit p_limit));
  get diagnostics v_gone = row_count;
  return v_gone;
end $f$;
