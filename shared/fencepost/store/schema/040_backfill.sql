-- Backfill: commands that come as messages. A message may come twice, twice at once, late, or in the wrong order, and whoever works on it may be killed.
-- A command is one row here, and its fence and its place are what makes all of that harmless:
--   begin_command  whoever begins raises the fence: the delivery before it is stale from then on
--   a page         locks the command's row, checks the fence, does its work and moves the place, in one statement: all of it or none
--   continuation   the number of the newest message that carries the command on: an older one has nothing left to do
-- Order of locks: the command's row, then whatever the work locks. Nobody else locks a command's row.

create table fencepost.command (
  id uuid primary key,                                         -- chosen by whoever sent it
  what text not null check (what in ('enqueue', 'redrive', 'replay', 'resolve', 'drain')),
  digest bytea not null,                                       -- of its words: the same id with other words is refused
  fence bigint not null default 0,
  continuation int not null default 0,
  place jsonb not null default '{}',                           -- how far it got
  counts jsonb not null default '{}',
  since timestamptz, until timestamptz not null,               -- its range, fixed when it began: what it parks or adds itself is never met again
  begun_at timestamptz not null,
  seen_at timestamptz not null,
  ended_at timestamptz,
  ending text check (ending in ('done', 'refused')),
  reason text)
  with (fillfactor = 50);
create index command_begun on fencepost.command (begun_at);    -- retention only; no page changes it, so that pages stay HOT

create table fencepost.command_fault (                         -- what was bad, without a value of it; the first thousand of a command
  command_id uuid not null,
  line bigint not null,                                        -- of the file, row of the message, or id of the notification
  fault text not null,
  primary key (command_id, line));

-- ---------------------------------------------------------------------------------------------------------------- the command itself

-- Take it up. Verdicts: begun, resumed (both with the new fence) · done, refused (it has ended) · superseded (a newer message carries it on) ·
-- differs (the id belongs to a command with other words). A range is given as instants, or as seconds back from now.
create function fencepost.begin_command(p_id uuid, p_what text, p_digest bytea, p_continuation int, p_since timestamptz, p_since_seconds float8,
                                        p_until timestamptz, p_until_seconds float8)
returns table (verdict text, fence bigint, place jsonb, counts jsonb, reason text) language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $f$
#variable_conflict use_column
declare v fencepost.command; v_now timestamptz := fencepost.now_(); v_new boolean;
begin
  insert into fencepost.command (id, what, digest, since, until, begun_at, seen_at)
  values (p_id, p_what, p_digest, coalesce(p_since, v_now - p_since_seconds * interval '1 s'),
          least(coalesce(p_until, v_now - greatest(p_until_seconds, 0) * interval '1 s', v_now), v_now), v_now, v_now) on conflict do nothing;
  v_new := found;
  select c.* into v from fencepost.command c where c.id = p_id for update;
  if v.what <> p_what or v.digest <> p_digest then
    return query select 'differs', v.fence, v.place, v.counts, null::text;
  elsif v.ended_at is not null then
    return query select v.ending, v.fence, v.place, v.counts, v.reason;
  elsif p_continuation < v.continuation then
    return query select 'superseded', v.fence, v.place, v.counts, null::text;
  else
    update fencepost.command c set fence = v.fence + 1, continuation = greatest(v.continuation, p_continuation), seen_at = v_now where c.id = p_id;
    return query select case when v_new then 'begun' else 'resumed' end, v.fence + 1, v.place, v.counts, null::text;
  end if;
end $f$;

-- The command's row, locked, if this fence still holds it; else nothing.
create function fencepost.command_turn_(p_id uuid, p_fence bigint) returns fencepost.command language plpgsql as $f$
declare v fencepost.command;
begin
  select c.* into v from fencepost.command c where c.id = p_id and c.fence = p_fence and c.ended_at is null for update;
  return v;
end $f$;

create function fencepost.sum_(p_a jsonb, p_b jsonb) returns jsonb language sql immutable as $f$
  select coalesce(jsonb_object_agg(s.key, s.sum), '{}')
    from (select e.key, sum(e.value::bigint) as sum from (select * from jsonb_each_text(p_a) union all select * from jsonb_each_text(p_b)) e group by e.key) s $f$;

-- The end of a page. Answers the verdict: going, or how the command ended.
create function fencepost.advance_(v fencepost.command, p_place jsonb, p_counts jsonb, p_ending text, p_reason text default null) returns text language plpgsql as $f$
begin
  update fencepost.command c
     set place = p_place, counts = fencepost.sum_(v.counts, p_counts), seen_at = fencepost.now_(),
         ended_at = case when p_ending is not null then fencepost.now_() end, ending = p_ending, reason = left(p_reason, 500)
   where c.id = v.id;
  return coalesce(p_ending, 'going');
end $f$;

-- Bad ones are counted all and kept up to a thousand a command.
create function fencepost.note_faults_(v fencepost.command, p_lines bigint[], p_faults text[]) returns void language plpgsql as $f$
begin
  insert into fencepost.command_fault (command_id, line, fault)
  select v.id, f.line, left(f.fault, 300) from unnest(p_lines, p_faults) as f(line, fault)
   order by f.line limit greatest(0, 1000 - coalesce((v.counts ->> 'refused')::int, 0)) on conflict do nothing;
end $f$;

-- It has ended: done or refused. False: this fence no longer holds it.
create function fencepost.end_command(p_id uuid, p_fence bigint, p_ending text, p_reason text, p_counts jsonb) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $f$
declare v fencepost.command := fencepost.command_turn_(p_id, p_fence);
begin
  if v.id is null then return false; end if;
  perform fencepost.advance_(v, v.place, p_counts, p_ending, p_reason);
  return true;
end $f$;

-- A message with this number is on its way to carry it on. Said after the queue took it.
create function fencepost.command_continued(p_id uuid, p_fence bigint, p_continuation int) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $f$
declare v fencepost.command := fencepost.command_turn_(p_id, p_fence);
begin
  if v.id is null then return false; end if;
  update fencepost.command c set continuation = greatest(v.continuation, p_continuation) where c.id = p_id;
  return true;
end $f$;

-- How it stands, as one JSON value; null: there is no such command.
create function fencepost.command_status(p_id uuid) returns jsonb language sql stable security definer set search_path = pg_catalog, pg_temp as $f$
  select jsonb_build_object('id', c.id, 'command', c.what, 'state', coalesce(c.ending, 'under way'), 'reason', c.reason, 'counts', c.counts,
           'continuation', c.continuation, 'begun_at', fencepost.instant_(c.begun_at), 'seen_at', fencepost.instant_(c.seen_at), 'ended_at', fencepost.instant_(c.ended_at),
           'faults', (select coalesce(jsonb_agg(jsonb_build_object('line', f.line, 'fault', f.fault) order by f.line), '[]') from fencepost.command_fault f where f.command_id = c.id))
    from fencepost.command c where c.id = p_id $f$;

-- Commands nobody has spoken of since p_from, and for thirty days at least: a message that came after its command went would do it again, and SQS keeps
-- one for fourteen days, in the DLQ too. Faults first. What another holds is left to it. Answers how many rows went, p_limit at most, and how many commands.
create function fencepost.commands_kept_from_(p_from timestamptz) returns timestamptz language sql stable as $f$
  select least(p_from, fencepost.now_() - interval '30 days') $f$;
create function fencepost.prune_commands_(p_from timestamptz, p_limit int, out rows int, out commands int) language plpgsql as $f$
declare v_from timestamptz := fencepost.commands_kept_from_(p_from); v_left int := p_limit; v_id uuid; v_gone int;
begin
  commands := 0;
  for v_id in
    select c.id from fencepost.command c where c.begun_at < v_from and c.seen_at < v_from order by c.begun_at limit p_limit for update skip locked
  loop
    exit when v_left = 0;
    delete from fencepost.command_fault f where f.ctid = any(array(select f.ctid from fencepost.command_fault f where f.command_id = v_id limit v_left));
    get diagnostics v_gone = row_count;
    v_left := v_left - v_gone;
    exit when v_left = 0;
    delete from fencepost.command c where c.id = v_id;
    v_left := v_left - 1;
    commands := commands + 1;
  end loop;
  rows := p_limit - v_left;
end $f$;

-- ---------------------------------------------------------------------------------------------------------------- enqueue

-- A page of rows. p_lines are their numbers; p_bad_lines and p_faults what was bad before it came here. Atomic: one bad row of the page refuses the command.
-- Verdicts: stale, going, done, refused; with the page's own counts and what the database found bad.
create function fencepost.command_enqueue(
  p_id uuid, p_fence bigint, p_place jsonb, p_last boolean, p_atomic boolean, p_bad_lines bigint[], p_faults text[], p_lines bigint[],
  channels text[], recipients text[], payloads text[], due_ats timestamptz[], delays interval[], expire_ats timestamptz[], ttls interval[], priorities int[],
  dedupe_keys text[], on_uncertains text[], replays_of bigint[])
returns table (verdict text, counts jsonb, lines bigint[], faults text[])
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $f$
#variable_conflict use_column
declare v fencepost.command := fencepost.command_turn_(p_id, p_fence); v_counts jsonb; v_lines bigint[]; v_faults text[]; v_ending text := case when p_last then 'done' end;
begin
  if v.id is null then return query select 'stale', '{}'::jsonb, '{}'::bigint[], '{}'::text[]; return; end if;
  begin
    select jsonb_build_object('enqueued', count(*) filter (where e.created), 'existing', count(*) filter (where e.error is null and not e.created), 'differing', count(*) filter (where e.differs)),
           coalesce(array_agg(p_lines[e.row_number] order by e.row_number) filter (where e.error is not null), '{}'),
           coalesce(array_agg(e.error order by e.row_number) filter (where e.error is not null), '{}')
      into v_counts, v_lines, v_faults
      from fencepost.enqueue_many(channels, recipients, payloads, due_ats, delays, expire_ats, ttls, priorities, dedupe_keys, on_uncertains, replays_of, atomic => false) e;
    if p_atomic and cardinality(v_lines) + cardinality(p_bad_lines) > 0 then raise exception using errcode = '22X02'; end if;
  exception when sqlstate '22X02' then                         -- what was enqueued just now is undone; what was found stays known
    v_counts := '{}';
    v_ending := 'refused';
  end;
  v_counts := v_counts || jsonb_build_object('refused', cardinality(v_lines) + cardinality(p_bad_lines));
  perform fencepost.note_faults_(v, p_bad_lines || v_lines, p_faults || v_faults);
  return query select fencepost.advance_(v, p_place, v_counts, v_ending, case when v_ending = 'refused' then 'atomic, and some rows are bad: nothing was enqueued' end),
                      v_counts, v_lines, v_faults;
end $f$;

-- ---------------------------------------------------------------------------------------------------------------- redrive, resolve

-- The next page of parked ones: p_limit entries of the index are looked at, and those that match are meant. A filter that matches nothing still ends.
create function fencepost.parked_turn_(v fencepost.command, p_kinds text[], p_channel text, p_reason text, p_limit int, out ids bigint[], out place jsonb, out last boolean)
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off as $f$
declare
  v_kind fencepost.kind := coalesce(v.place ->> 'kind', p_kinds[1]); v_at timestamptz := v.place ->> 'at'; v_after bigint := v.place ->> 'id';
  v_channel smallint := (select k.id from fencepost.channel k where k.name = p_channel); v_count bigint; v_next text := p_kinds[array_position(p_kinds, v_kind::text) + 1];
begin
  select coalesce(array_agg(s.id) filter (where s.meant), '{}'), count(*), max(s.closed_at), (array_agg(s.id order by s.closed_at desc, s.id desc))[1]
    into ids, v_count, v_at, v_after
    from (select c.notification_id as id, c.closed_at,
                 (p_reason is null or c.reason = p_reason)
                 and (p_channel is null or (select n.channel from fencepost.notification n where n.id = c.notification_id) = v_channel) as meant
            from fencepost.closed c
           where c.kind = v_kind and c.kind in ('dead', 'uncertain') and c.closed_at >= coalesce(v_at, v.since, '-infinity') and c.closed_at <= v.until
             and (v_at is null or (c.closed_at, c.notification_id) > (v_at, v_after))
           order by c.closed_at, c.notification_id limit p_limit) s;
  last := v_count < p_limit and v_next is null;
  place := case when v_count < p_limit then jsonb_build_object('kind', v_next) else jsonb_build_object('kind', v_kind, 'at', v_at, 'id', v_after) end;
end $f$;

-- A page of redrive or resolve. p_word: redrive, resend, delivered, not_delivered or dead. p_ids: these (and p_last says whether they are the last); null: by the selector.
create function fencepost.command_move(p_id uuid, p_fence bigint, p_word text, p_ids bigint[], p_last boolean, p_kinds text[], p_channel text, p_reason text,
                                       p_who text, p_why text, p_limit int)
returns table (verdict text, counts jsonb, place jsonb) language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $f$
#variable_conflict use_column
declare v fencepost.command := fencepost.command_turn_(p_id, p_fence); v_ids bigint[] := p_ids; v_place jsonb; v_last boolean := p_last; v_counts jsonb;
begin
  if v.id is null then return query select 'stale', '{}'::jsonb, '{}'::jsonb; return; end if;
  perform fencepost.known_channel_(p_channel);
  if p_ids is null then
    select t.ids, t.place, t.last into v_ids, v_place, v_last from fencepost.parked_turn_(v, p_kinds, p_channel, p_reason, p_limit) t;
  else
    v_place := jsonb_build_object('ids', coalesce((v.place ->> 'ids')::int, 0) + cardinality(p_ids));
  end if;
  select coalesce(jsonb_object_agg(m.verdict, m.count), '{}') into v_counts from fencepost.moved_(v_ids, p_word, p_who, p_why) m;
  return query select fencepost.advance_(v, v_place, v_counts, case when v_last then 'done' end), v_counts, v_place;
end $f$;

-- What became of them, counted.
create function fencepost.moved_(p_ids bigint[], p_word text, p_who text, p_why text) returns table (verdict text, count bigint) language plpgsql as $f$
#variable_conflict use_column
begin
  if p_word in ('redrive', 'resend') then
    return query select m.verdict, count(*) from fencepost.redrive(p_ids, p_word = 'resend', p_who, p_why) m group by m.verdict;
  else
    return query select m.verdict, count(*) from fencepost.resolve(p_ids, p_word, p_who, p_why) m group by m.verdict;
  end if;
end $f$;

-- ---------------------------------------------------------------------------------------------------------------- replay

-- Delivered ones by id, in a range of when they were delivered: p_limit closed ones are looked at. more: there are others behind after_id.
create function fencepost.delivered_page(p_channel text, p_since timestamptz, p_until timestamptz, p_after_id bigint, p_upto_id bigint, p_limit int)
returns table (ids bigint[], after_id bigint, more boolean)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off as $f$
#variable_conflict use_column
declare v_channel smallint := (select k.id from fencepost.channel k where k.name = p_channel);
begin
  perform fencepost.known_channel_(p_channel);
  return query
    select coalesce(array_agg(s.id) filter (where s.meant), '{}'), max(s.id), count(*) = p_limit
      from (select c.notification_id as id,
                   c.kind = 'delivered' and c.closed_at >= coalesce(p_since, '-infinity') and c.closed_at <= coalesce(p_until, 'infinity')
                   and (p_channel is null or (select n.channel from fencepost.notification n where n.id = c.notification_id) = v_channel) as meant
              from fencepost.closed c where c.notification_id > coalesce(p_after_id, 0) and c.notification_id <= coalesce(p_upto_id, 9223372036854775807)
             order by c.notification_id limit p_limit) s;
end $f$;

-- A page of replay. Each copy has its own key, of the command and the original: the same command makes one copy, whatever becomes of its row here.
-- A copy is due now; one that could expire gets as much time as the original had.
create function fencepost.command_replay(p_id uuid, p_fence bigint, p_ids bigint[], p_last boolean, p_channel text, p_limit int)
returns table (verdict text, counts jsonb, place jsonb) language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $f$
#variable_conflict use_column
declare v fencepost.command := fencepost.command_turn_(p_id, p_fence); v_ids bigint[] := p_ids; v_place jsonb; v_last boolean := p_last; v_counts jsonb; v_upto bigint;
begin
  if v.id is null then return query select 'stale', '{}'::jsonb, '{}'::jsonb; return; end if;
  if p_ids is null then
    v_upto := coalesce((v.place ->> 'upto')::bigint, (select n.id from fencepost.notification n order by n.id desc limit 1));   -- its own copies come later
    select d.ids, jsonb_build_object('after', d.after_id, 'upto', v_upto), not d.more into v_ids, v_place, v_last
      from fencepost.delivered_page(p_channel, v.since, v.until, (v.place ->> 'after')::bigint, v_upto, p_limit) d;
  else
    v_place := jsonb_build_object('ids', coalesce((v.place ->> 'ids')::int, 0) + cardinality(p_ids));
  end if;
  v_counts := fencepost.copy_(v, v_ids);
  return query select fencepost.advance_(v, v_place, v_counts, case when v_last then 'done' end), v_counts, v_place;
end $f$;

create function fencepost.copy_(v fencepost.command, p_ids bigint[]) returns jsonb language plpgsql set enable_seqscan = off as $f$
declare v_counts jsonb; v_lines bigint[]; v_faults text[];
begin
  with o as materialized (
    select n.id, k.name, n.recipient, n.payload::text as payload, n.priority::int, n.on_uncertain,
           least(n.expires_at - n.due_at, interval '3650 days') as ttl, fencepost.state_(w.id) as state
      from (select distinct w.id from unnest(p_ids) as w(id)) w
      left join fencepost.notification n on n.id = w.id left join fencepost.channel k on k.id = n.channel),
  a as (select array_agg(o.id order by o.id) as ids, array_agg(o.name order by o.id) as names, array_agg(o.recipient order by o.id) as recipients, array_agg(o.payload order by o.id) as payloads,
               array_agg(o.priority order by o.id) as priorities, array_agg(o.on_uncertain order by o.id) as policies, array_agg(o.ttl order by o.id) as ttls,
               array_agg(format('replay %s of %s', v.id, o.id) order by o.id) as keys
          from o where o.state = 'delivered'),
  e as materialized (
    select e.*, a.ids[e.row_number] as original
      from a, lateral fencepost.enqueue_many(a.names, a.recipients, a.payloads, ttls => a.ttls, priorities => a.priorities, dedupe_keys => a.keys,
                                             on_uncertains => a.policies, replays_of => a.ids, atomic => false) e),
  s as (select case when e.error is not null then 'refused' when e.created then 'replayed' else 'existing' end as word, count(*) as count from e group by 1
        union all select o.state, count(*) from o where o.state <> 'delivered' group by 1)
  select (select coalesce(jsonb_object_agg(s.word, s.count), '{}') from s),
         coalesce(array_agg(e.original) filter (where e.error is not null), '{}'), coalesce(array_agg(e.error) filter (where e.error is not null), '{}')
    into v_counts, v_lines, v_faults from e;
  perform fencepost.note_faults_(v, v_lines, v_faults);
  return v_counts;
end $f$;

-- ---------------------------------------------------------------------------------------------------------------- evidence

-- What a run knew and could not say: the words it would have said too late. Verdicts as in an exchange: L and U written down, R known before, C a conflict.
create function fencepost.run_evidence(p_run uuid, p_ids bigint[], p_fences bigint[], p_outcomes fencepost.outcome[], p_references text[], p_details text[],
  p_gone boolean[]) returns text language plpgsql security definer
set search_path = pg_catalog, pg_temp set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off as $f$
begin
  perform 1 from (select distinct w.id from unnest(p_ids) as w(id) order by w.id) w, lateral (select 1 from fencepost.queue q where q.notification_id = w.id for update) q;
  if true = any(p_gone) then                                -- the recipients are
    perform fencepost.settle_unregistered_(p_ids, p_fences, p_outcomes, (select array_agg(case when g.gone then 'unregistered' end order by g.ord)
                                             from unnest(p_gone) with ordinality as g(gone, ord)), p_references, p_details);
  end if;
  return coalesce(fencepost.late_(p_run, p_ids, p_fences, p_outcomes, p_references, p_details, '{}', '{}'), '');
end $f$;
