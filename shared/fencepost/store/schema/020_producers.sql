-- What a producer asks, in the transaction of its own data. One SQL call from any language:
--
--   select id, created, differs from fencepost.enqueue('push', 'device-token', '{"title": "Your order has left"}', dedupe_key => 'order-7-left');
--
-- Promises: a notification is enqueued if and only if the caller's transaction commits. The same dedupe key again in one channel answers the first one's id
-- (created false; differs true when its recipient or payload is another): never an error, never a second notification. Callers that submit the same keys in one
-- call each, in whatever order, wait for one another and never deadlock.
-- A bad row is refused as SQLSTATE 22X01 and "row 2, payload.badge: must be …": row (from 1) and field, never the value of a recipient, key or payload.

-- ---------------------------------------------------------------------------------------------------------------- payload (docs/payload.md)

create function fencepost.first_unknown_key_(p_payload jsonb, p_known text[]) returns text language sql immutable as $f$
  select to_json(left(min(k.key), 60))::text from jsonb_object_keys(p_payload - p_known) as k(key) $f$;
create function fencepost.first_not_text_(p_payload jsonb) returns text language sql immutable as $f$
  select min(e.key) from jsonb_each(p_payload) as e where jsonb_typeof(e.value) <> 'string' $f$;

-- Why this payload is refused; null: it is not. Simple enough to be inlined: three jsonb operations for a good one, more only where its size says that it could be
-- deep, or hold a number so large that its text outgrows it. (No reader of JSON can be trusted with those: a run that cannot read one row loses its neighbours too.)
-- Stable because pg_column_size is.
create function fencepost.payload_fault_(p jsonb) returns text language sql stable as $f$
  select case
    when jsonb_typeof(p) <> 'object' then 'payload: must be a JSON object'
    when pg_column_size(p) > 800 and jsonb_path_exists(p, 'strict $.**{101}') then 'payload: nested deeper than 100'
    when octet_length(p::text) > pg_column_size(p) + 100 and jsonb_path_exists(p, 'strict $.** ? (@ > 1.7976931348623158e308 || @ < -1.7976931348623158e308)')
      then 'payload: holds a number beyond 1.8e308'
    when p - '{title,body,html,url,image,icon,sound,collapse,thread,category,type,urgency,badge,silent,data,raw}'::text[] <> '{}'
      then 'payload: unknown key ' || fencepost.first_unknown_key_(p, '{title,body,html,url,image,icon,sound,collapse,thread,category,type,urgency,badge,silent,data,raw}')
    when jsonb_path_exists(p - '{badge,silent,data,raw}'::text[], 'strict $.* ? (@.type() <> "string")')
      then 'payload.' || fencepost.first_not_text_(p - '{badge,silent,data,raw}'::text[]) || ': must be a string'
    when p ? 'badge' and not jsonb_path_exists(p, 'strict $.badge ? (@ >= 0 && @ <= 99999 && @ == @.floor())', '{}', true)
      then 'payload.badge: must be a whole number from 0 to 99999'
    when jsonb_typeof(p -> 'silent') <> 'boolean' then 'payload.silent: must be true or false'
    when jsonb_typeof(p -> 'data') <> 'object' then 'payload.data: must be an object'
    when jsonb_typeof(p -> 'raw') <> 'object' or jsonb_path_exists(p, 'strict $.raw.* ? (@.type() <> "object")', '{}', true)
      then 'payload.raw: must be an object of one object for each sender'
    when p ->> 'urgency' not in ('low', 'normal', 'high') then 'payload.urgency: must be low, normal or high'
    when octet_length(p ->> 'collapse') > 64 then 'payload.collapse: longer than 64 bytes'
  end $f$;

-- Text to jsonb, row by row only where the whole does not pass. The server's own words are not repeated: they quote the payload.
create function fencepost.parse_payloads_(p_texts text[], out parsed jsonb[], out faults text[]) language plpgsql immutable as $f$
begin
  begin
    parsed := p_texts::jsonb[];
    return;
  exception when data_exception or program_limit_exceeded or statement_too_complex then
    parsed := array_fill(null::jsonb, array[cardinality(p_texts)]);   -- whole from the start: an array grown from its middle would begin there
    faults := array_fill(null::text, array[cardinality(p_texts)]);
  end;
  for i in 1 .. cardinality(p_texts) loop
    begin
      parsed[i] := p_texts[i]::jsonb;
    exception
      when untranslatable_character then faults[i] := 'payload: holds the character U+0000';
      when data_exception or program_limit_exceeded or statement_too_complex then
        faults[i] := case when p_texts[i] ~* '\\ud[89a-f][0-9a-f]{2}' then 'payload: is not JSON, or holds a lone surrogate' else 'payload: is not JSON' end;
    end;
  end loop;
end $f$;

-- ---------------------------------------------------------------------------------------------------------------- enqueue

-- Why this row is refused; null: it is not. p_channel null is an unknown channel, p_replay null of a given replay_of an unknown notification.
-- Stable because to_json is: called immutable it would not be inlined, and cost 10 us a row.
create function fencepost.row_fault_(
  p_name text, p_channel smallint, p_bytes_max int, p_recipient text, p_payload jsonb, p_now timestamptz, p_due_at timestamptz, p_delay interval, p_due timestamptz,
  p_expires_at timestamptz, p_ttl interval, p_expires timestamptz, p_priority int, p_dedupe_key text, p_on_uncertain text, p_replay_of bigint, p_replay bigint)
returns text language sql stable as $f$
  select case
    when p_name is null then 'channel: is missing'
    when p_channel is null and p_name ~ '^[a-z][a-z0-9_-]{0,62}$' then 'channel: there is no channel "' || p_name || '"'
    when p_channel is null then 'channel: no channel can have this name'   -- not repeated: a recipient perhaps, in the wrong place
    when coalesce(p_recipient, '') = '' then 'recipient: is missing'
    when octet_length(p_recipient) > 8192 then 'recipient: longer than 8192 bytes'
    when p_payload is null then 'payload: is missing'
    when octet_length(p_payload::text) > p_bytes_max
      then 'payload: ' || octet_length(p_payload::text) || ' bytes, and channel ' || p_name || ' takes ' || p_bytes_max || ' at most'
    when not isfinite(p_due_at) then 'due_at: must be finite'
    when p_due_at >= '10000-01-01 UTC' then 'due_at: lies beyond the year 9999'
    when p_due_at is not null and p_delay is not null then 'delay: and due_at exclude each other'
    when p_delay < '0' or p_delay > '3650 days' then 'delay: must lie between 0 and 3650 days'
    when p_expires_at is not null and p_ttl is not null then 'ttl: and expires_at exclude each other'
    when p_ttl <= '0' or p_ttl > '3650 days' then 'ttl: must be more than 0 and at most 3650 days'
    when p_expires <= p_now then 'expires_at: is past'
    when p_expires_at >= '10000-01-01 UTC' and p_expires_at <> 'infinity' then 'expires_at: lies beyond the year 9999'
    when p_expires <= p_due then 'expires_at: is not after due_at'
    when p_priority not between 0 and 2 then 'priority: must be 0 (first), 1 or 2'
    when p_dedupe_key = '' then 'dedupe_key: is empty'
    when octet_length(p_dedupe_key) > 512 then 'dedupe_key: longer than 512 bytes'
    when p_on_uncertain not in ('resend', 'hold', 'reconcile') then 'on_uncertain: must be resend, hold or reconcile'
    when p_replay_of is not null and p_replay is null then 'replay_of: there is no such notification'
  end $f$;

create function fencepost.refuse_rows_(p_faults text[]) returns void language plpgsql as $f$
declare v_ord bigint; v_fault text; v_bad bigint;
begin
  select f.ord, f.fault, count(*) over () into v_ord, v_fault, v_bad from unnest(p_faults) with ordinality as f(fault, ord) where f.fault is not null order by f.ord limit 1;
  raise exception using errcode = '22X01', column = substring(v_fault from '^[a-z_.]+'), schema = 'fencepost',
    message = format('row %s, %s%s', v_ord, v_fault, case when v_bad > 1 then format(' (and %s more bad rows)', v_bad - 1) end);
end $f$;

-- An array left out is null in every row; one that is there has an entry for every row, channels alone may have a single one for all.
create function fencepost.refuse_uneven_(p_rows int, p_lengths int[], p_names text[]) returns void language plpgsql as $f$
declare v_name text; v_length int;
begin
  select l.name, l.length into v_name, v_length from unnest(p_lengths, p_names) as l(length, name) where l.length <> p_rows limit 1;
  if found then
    raise exception using errcode = '22X01', column = v_name, schema = 'fencepost', message = format('%s: has %s entries for %s rows', v_name, v_length, p_rows);
  end if;
end $f$;

-- Many at once, set-based. Payloads are JSON as text, so that a bad one can be named. due_at past or left out: due now. ttl counts from due_at. priority 0 is first.
-- One row of answer a row, in order. atomic: one bad row refuses the call. Not atomic: good rows are enqueued, a bad row has no id and says its error.
create function fencepost.enqueue_many(
  channels text[], recipients text[], payloads text[], due_ats timestamptz[] default null, delays interval[] default null,
  expire_ats timestamptz[] default null, ttls interval[] default null, priorities int[] default null, dedupe_keys text[] default null,
  on_uncertains text[] default null, replays_of bigint[] default null, atomic boolean default true)
returns table (row_number bigint, id bigint, created boolean, differs boolean, error text)
language plpgsql security definer
set search_path = pg_catalog, pg_temp set jit = off set plan_cache_mode = force_generic_plan set enable_seqscan = off
as $f$
#variable_conflict use_column
declare
  v_now timestamptz := fencepost.now_(); v_rows int := coalesce(cardinality(recipients), 0); v_payloads jsonb[]; v_unparsed text[];
  v_ids bigint[]; v_channels smallint[]; v_faults text[]; v_faulty boolean; v_missing boolean;
begin
  if v_rows > 1 and cardinality(channels) = 1 then channels := array_fill(channels[1], array[v_rows]); end if;
  perform fencepost.refuse_uneven_(v_rows,
    array[coalesce(cardinality(channels), 0), coalesce(cardinality(payloads), 0), cardinality(due_ats), cardinality(delays), cardinality(expire_ats), cardinality(ttls),
          cardinality(priorities), cardinality(dedupe_keys), cardinality(on_uncertains), cardinality(replays_of)],
    '{channels,payloads,due_ats,delays,expire_ats,ttls,priorities,dedupe_keys,on_uncertains,replays_of}');
  if v_rows = 0 then return; end if;
  select p.parsed, p.faults into v_payloads, v_unparsed from fencepost.parse_payloads_(payloads) p;
  -- Keys are inserted in one order for everybody: whoever waits for a duplicate holds only smaller keys.
  with w as materialized (
    select f.*, case when f.fault is null then nextval('fencepost.notification_id_seq') end as id
      from (select s.*, coalesce(s.unparsed, fencepost.payload_fault_(s.payload), fencepost.row_fault_(
                     s.name, s.channel, s.bytes_max, s.recipient, s.payload, v_now, s.due_at, s.delay, s.due, s.expires_at, s.ttl, s.expires,
                     s.priority, s.dedupe_key, s.on_uncertain, s.replay_of, s.replay)) as fault
              from (select u.*, c.id as channel, c.payload_bytes_max as bytes_max,
                           case when u.delay between '0' and '3650 days' then v_now + u.delay else greatest(u.due_at, v_now) end as due,
                           nullif(case when u.ttl between '0' and '3650 days'
                                       then case when u.delay between '0' and '3650 days' then v_now + u.delay else least(greatest(u.due_at, v_now), '10000-01-01 UTC') end + u.ttl
                                       else u.expires_at end, 'infinity') as expires,
                           case when u.replay_of is not null then (select n.id from fencepost.notification n where n.id = u.replay_of) end as replay
                      from unnest(channels, recipients, v_payloads, v_unparsed, due_ats, delays, expire_ats, ttls, priorities, dedupe_keys, on_uncertains, replays_of)
                             with ordinality as u(name, recipient, payload, unparsed, due_at, delay, expires_at, ttl, priority, dedupe_key, on_uncertain, replay_of, ord)
                      left join fencepost.channel c on c.name = u.name
                    offset 0) s
            offset 0) f
     order by f.channel, f.dedupe_key, f.ord),
  n as (
    insert into fencepost.notification (id, channel, recipient, payload, dedupe_key, priority, due_at, expires_at, on_uncertain, replay_of)
    select w.id, w.channel, w.recipient, w.payload, w.dedupe_key, coalesce(w.priority, 1), w.due, w.expires, w.on_uncertain, w.replay_of
      from w where w.id is not null order by w.channel, w.dedupe_key, w.ord
    on conflict (channel, dedupe_key) do nothing returning id, channel, priority, due_at),
  q as (insert into fencepost.queue (notification_id, due_at, channel, priority) select n.id, n.due_at, n.channel, n.priority from n)
  select array_agg(r.id), array_agg(r.channel), array_agg(r.fault), bool_or(r.fault is not null), bool_or(r.fault is null and r.id is null)
    into v_ids, v_channels, v_faults, v_faulty, v_missing
    from (select n.id, w.channel, w.fault from w left join n on n.id = w.id order by w.ord) r;
  if v_faulty and atomic is not false then perform fencepost.refuse_rows_(v_faults); end if;
  return query select * from fencepost.answer_rows_(v_missing, v_ids, v_faults, v_channels, dedupe_keys, recipients, v_payloads);
end $f$;

-- A statement of its own, after the insert: only it sees what another transaction committed while the insert waited for it.
create function fencepost.answer_rows_(p_missing boolean, p_ids bigint[], p_faults text[], p_channels smallint[], p_dedupe_keys text[], p_recipients text[], p_payloads jsonb[])
returns table (row_number bigint, id bigint, created boolean, differs boolean, error text) language plpgsql as $f$
#variable_conflict use_column
begin
  if not p_missing then
    return query select w.ord, w.id, w.id is not null, false, w.fault from unnest(p_ids, p_faults) with ordinality as w(id, fault, ord);
    return;
  end if;
  return query
    select w.ord, coalesce(w.id, o.id), w.id is not null, coalesce(o.differs, false),
           case when coalesce(w.id, o.id) is null then coalesce(w.fault, 'dedupe_key: its notification was deleted just now, try again') end
      from unnest(p_ids, p_faults, p_channels, p_dedupe_keys, p_recipients, p_payloads) with ordinality as w(id, fault, channel, dedupe_key, recipient, payload, ord)
      left join lateral (select o.id, o.recipient <> w.recipient or o.payload <> w.payload as differs from fencepost.notification o
                          where w.id is null and w.fault is null and o.channel = w.channel and o.dedupe_key = w.dedupe_key offset 0) o on true
     order by w.ord;
end $f$;

-- One. The payload as JSON text or as jsonb.
create function fencepost.enqueue(
  channel text, recipient text, payload text, due_at timestamptz default null, delay interval default null, expires_at timestamptz default null,
  ttl interval default null, priority int default null, dedupe_key text default null, on_uncertain text default null, replay_of bigint default null)
returns table (id bigint, created boolean, differs boolean) language plpgsql security definer set search_path = pg_catalog, pg_temp as $f$
#variable_conflict use_variable
begin
  return query select m.id, m.created, m.differs from fencepost.enqueue_many(
    array[channel], array[recipient], array[payload], array[due_at], array[delay], array[expires_at], array[ttl], array[priority], array[dedupe_key],
    array[on_uncertain], array[replay_of]) as m;
end $f$;

create function fencepost.enqueue(
  channel text, recipient text, payload jsonb, due_at timestamptz default null, delay interval default null, expires_at timestamptz default null,
  ttl interval default null, priority int default null, dedupe_key text default null, on_uncertain text default null, replay_of bigint default null)
returns table (id bigint, created boolean, differs boolean) language plpgsql security definer set search_path = pg_catalog, pg_temp as $f$
#variable_conflict use_variable
begin
  return query select m.id, m.created, m.differs from fencepost.enqueue_many(
    array[channel], array[recipient], array[payload::text], array[due_at], array[delay], array[expires_at], array[ttl], array[priority], array[dedupe_key],
    array[on_uncertain], array[replay_of]) as m;
end $f$;

-- ---------------------------------------------------------------------------------------------------------------- status

-- What became of it, for who enqueued it; no row: there is no such notification. state: open (due later), due, leased, closed. doubt: an earlier attempt may
-- have reached the recipient. No recipient, no payload, no error texts.
create function fencepost.status(notification bigint)
returns table (id bigint, state text, kind text, reason text, attempts int, doubt boolean, due_at timestamptz, closed_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off set plan_cache_mode = force_generic_plan set enable_seqscan = off as $f$
#variable_conflict use_column
begin
  return query
    select n.id,
           case when c.notification_id is not null then 'closed' when q.lease_until > fencepost.now_() then 'leased' when q.due_at <= fencepost.now_() then 'due' else 'open' end,
           c.kind::text, c.reason, coalesce(c.attempts, q.attempts)::int, coalesce(c.kind = 'uncertain', q.doubt, false), coalesce(q.due_at, n.due_at), c.closed_at
      from fencepost.notification n
      left join fencepost.queue q on q.notification_id = n.id
      left join fencepost.closed c on c.notification_id = n.id
     where n.id = status.notification;
end $f$;

create function fencepost.status(channel text, dedupe_key text)
returns table (id bigint, state text, kind text, reason text, attempts int, doubt boolean, due_at timestamptz, closed_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off set plan_cache_mode = force_generic_plan set enable_seqscan = off as $f$
#variable_conflict use_column
begin
  return query
    select s.* from fencepost.channel c join fencepost.notification n on n.channel = c.id,
      lateral fencepost.status(n.id) s where c.name = status.channel and n.dedupe_key = status.dedupe_key;
end $f$;
