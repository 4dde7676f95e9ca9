-- What an operator does at a terminal: channels, the binding to an installation, reports, selectors, the story of one notification.
-- The writers that move a notification (cancel, redrive, resolve, evidence, quarantine) live with the exchange: one order of row locks for all.
-- A refusal is SQLSTATE FP001: one line, safe to show, nothing written.

create function fencepost.refuse_(p_why text) returns void language plpgsql as $f$
begin raise exception using errcode = 'FP001', message = p_why; end $f$;

-- For a screen or a JSON line: UTC, milliseconds; null where there is no such instant.
create function fencepost.instant_(p_at timestamptz) returns text language sql stable as $f$
  select case when isfinite(p_at) then to_char(p_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') end $f$;
create function fencepost.seconds_until_(p_at timestamptz) returns float8 language sql stable as $f$
  select case when isfinite(p_at) then extract(epoch from p_at - fencepost.now_())::float8 end $f$;

-- ---------------------------------------------------------------------------------------------------------------- installation

-- Whose database this is. Null: bound to nobody yet. Reads one row.
create function fencepost.bound_to() returns text language sql stable security definer set search_path = pg_catalog, pg_temp as $f$
  select i.name from fencepost.installation i $f$;

-- Binds once. Answer: bound, already (same name), or rebound (another name, forced). Another name without force is refused:
-- a clone of production must not send production's notifications because somebody ran a script twice.
create function fencepost.bind(p_name text, p_force boolean default false) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $f$
declare v_name text;
begin
  if p_name is null or p_name !~ '^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$' then
    perform fencepost.refuse_('an installation name is 1 to 63 letters, digits, dots, dashes or underscores');
  end if;
  insert into fencepost.installation (name) values (p_name) on conflict do nothing;
  if found then return 'bound'; end if;
  select i.name into v_name from fencepost.installation i for update;
  if v_name = p_name then return 'already'; end if;
  if not coalesce(p_force, false) then
    perform fencepost.refuse_(format('this database is bound to installation %s; force is needed to bind it to another', v_name));
  end if;
  update fencepost.installation i set name = p_name;
  return 'rebound';
end $f$;

-- ---------------------------------------------------------------------------------------------------------------- channels

-- The file's words for a channel, defaults filled in. on_uncertain stays null where the file is silent: it has no default.
create function fencepost.channel_words_(p_channels jsonb) returns table (
  name text, sender text, settings jsonb, secret_reference text, slots int, rate float8, burst float8, on_uncertain text, policy jsonb, payload_bytes_max int)
language sql immutable as $f$
  select w.name, w.sender, coalesce(w.settings, '{}'), w.secret_reference, coalesce(w.slots, 50), w.rate,
         case when w.rate is not null then coalesce(w.burst, greatest(w.rate, 1)) else w.burst end,   -- a rate without a burst would be no limit at all
         w.on_uncertain, coalesce(w.policy, '{}'), coalesce(w.payload_bytes_max, 65536)
    from jsonb_to_recordset(p_channels) as w(name text, sender text, settings jsonb, secret_reference text, slots int, rate float8, burst float8,
                                             on_uncertain text, policy jsonb, payload_bytes_max int) $f$;

-- Why these words are refused; null: they are not. Never repeats a secret reference: people paste the secret itself.
create function fencepost.channel_fault_(w record, p_known boolean) returns text language plpgsql immutable as $f$
declare v_key text; v_value jsonb;
begin
  if w.name is null or w.name !~ '^[a-z][a-z0-9_-]{0,62}$' then return 'a channel name is a lower case letter, then letters, digits, dashes or underscores (63 at most)'; end if;
  if coalesce(w.sender, '') !~ '^[a-z][a-z0-9_-]*$' then return format('channel %s: sender is missing or no sender kind', w.name); end if;
  if jsonb_typeof(w.settings) <> 'object' then return format('channel %s: settings is no table', w.name); end if;
  if w.secret_reference !~ '^[a-z][a-z0-9]*:.' then return format('channel %s: secret_reference says where the secret is (env:NAME, file:PATH, secretsmanager:NAME or ssm:NAME), it is not the secret', w.name); end if;
  if w.slots not between 1 and 1000 then return format('channel %s: slots must lie between 1 and 1000', w.name); end if;
  if w.rate not between 0.000001 and 1000000 then return format('channel %s: rate must lie between 0.000001 and 1000000 a second', w.name); end if;
  if w.burst is not null and w.rate is null then return format('channel %s: burst without rate means nothing', w.name); end if;
  if w.burst not between 1 and 1000000 then return format('channel %s: burst must lie between 1 and 1000000', w.name); end if;
  if w.payload_bytes_max not between 1 and 1048576 then return format('channel %s: payload_bytes_max must lie between 1 and 1048576', w.name); end if;
  if w.on_uncertain is null and not p_known then
    return format('channel %s: on_uncertain must be chosen (resend, hold or reconcile): nobody else can know what a second copy costs the recipient', w.name);
  end if;
  if w.on_uncertain not in ('resend', 'hold', 'reconcile') then return format('channel %s: on_uncertain is resend, hold or reconcile', w.name); end if;
  if jsonb_typeof(w.policy) <> 'object' then return format('channel %s: policy is no table', w.name); end if;
  for v_key, v_value in select * from jsonb_each(w.policy) loop
    if v_key not in ('attempts_max', 'interruptions_max', 'backoff_base_seconds', 'backoff_cap_seconds', 'age_max_seconds', 'retry_after_max_seconds',
                     'unregistered_max') then
      return format('channel %s: policy.%s is unknown', w.name, left(v_key, 60));
    end if;
    if jsonb_typeof(v_value) <> 'number' or v_value::numeric <= 0 then return format('channel %s: policy.%s must be a number above 0', w.name, v_key); end if;
    if v_key in ('attempts_max', 'interruptions_max', 'unregistered_max') and (v_value::numeric % 1 <> 0 or v_value::numeric > 1000) then
      return format('channel %s: policy.%s must be a whole number, 1000 at most', w.name, v_key);
    end if;
    if v_value::numeric > 31536000 then return format('channel %s: policy.%s is more than a year', w.name, v_key); end if;
  end loop;
  return null;
end $f$;

-- Create or change channels by name, all or none. What is said is the whole of it: left out means the default, except on_uncertain, which stays.
-- A change raises the revision, so that what a run learnt under the old words cannot pause the new ones. A pause stays a pause.
-- p_dry: say what would change, write nothing. Rows in order of name.
create function fencepost.channel_apply(p_channels jsonb, p_dry boolean default false)
returns table (name text, change text, revision int, paused boolean, pause_reason text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $f$
#variable_conflict use_column
declare w record; v_old fencepost.channel; v_why text; v_twice text;
begin
  if jsonb_typeof(p_channels) is distinct from 'array' then perform fencepost.refuse_('channels must be a list'); end if;
  select x.name into v_twice from fencepost.channel_words_(p_channels) x group by x.name having count(*) > 1 limit 1;
  if v_twice is not null then perform fencepost.refuse_(format('channel %s is named twice', left(v_twice, 80))); end if;
  for w in select * from fencepost.channel_words_(p_channels) x order by x.name collate "C" loop
    select c.* into v_old from fencepost.channel c where c.name = w.name for update;
    v_why := fencepost.channel_fault_(w, v_old.id is not null);
    if v_why is not null then perform fencepost.refuse_(v_why); end if;
    w.on_uncertain := coalesce(w.on_uncertain, v_old.on_uncertain);
    if v_old.id is null then
      change := 'created';
      if not p_dry then
        insert into fencepost.channel (name, sender, settings, secret_reference, slots, rate, burst, on_uncertain, policy, payload_bytes_max)
        values (w.name, w.sender, w.settings, w.secret_reference, w.slots, w.rate, w.burst, w.on_uncertain, w.policy, w.payload_bytes_max);
      end if;
    elsif (v_old.sender, v_old.settings, v_old.secret_reference, v_old.slots::int, v_old.rate, v_old.burst, v_old.on_uncertain, v_old.policy, v_old.payload_bytes_max)
          is distinct from (w.sender, w.settings, w.secret_reference, w.slots, w.rate, w.burst, w.on_uncertain, w.policy, w.payload_bytes_max) then
      change := 'changed';
      if not p_dry then
        update fencepost.channel c
           set sender = w.sender, settings = w.settings, secret_reference = w.secret_reference, slots = w.slots, rate = w.rate, burst = w.burst,
               on_uncertain = w.on_uncertain, policy = w.policy, payload_bytes_max = w.payload_bytes_max, revision = c.revision + 1, revised_at = fencepost.now_()
         where c.id = v_old.id;
      end if;
    else
      change := 'unchanged';
    end if;
    name := w.name;
    revision := coalesce(v_old.revision, 0) + (change <> 'unchanged')::int;
    paused := coalesce(v_old.paused_until > fencepost.now_(), false);
    pause_reason := case when paused then v_old.pause_reason end;
    return next;
  end loop;
end $f$;

-- Nothing of the channel is claimed until then (p_seconds null: until somebody resumes it). Raises the revision: no run can shorten or rename it.
create function fencepost.channel_pause(p_name text, p_reason text, p_seconds float8 default null) returns int
language plpgsql security definer set search_path = pg_catalog, pg_temp as $f$
declare v_revision int;
begin
  if coalesce(btrim(p_reason), '') = '' then perform fencepost.refuse_('a pause needs a reason'); end if;
  if p_seconds <= 0 or p_seconds > 31536000 or p_seconds = 'NaN' then perform fencepost.refuse_('a pause lasts more than 0 seconds and a year at most'); end if;
  update fencepost.channel c
     set paused_until = coalesce(fencepost.now_() + p_seconds * interval '1 s', 'infinity'), pause_reason = left(p_reason, 200), revision = c.revision + 1,
         revised_at = fencepost.now_()
   where c.name = p_name returning c.revision into v_revision;
  if v_revision is null then perform fencepost.refuse_(format('there is no channel %s', left(p_name, 80))); end if;
  return v_revision;
end $f$;

-- Open for the next claim. Answer: the new revision, and the reason it was paused for (null: it was not paused).
create function fencepost.channel_resume(p_name text, out revision int, out was_paused_for text)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $f$
#variable_conflict use_column
begin
  select case when c.paused_until > fencepost.now_() then coalesce(c.pause_reason, '') end into was_paused_for from fencepost.channel c where c.name = p_name for update;
  update fencepost.channel c set paused_until = '-infinity', pause_reason = null, revision = c.revision + 1, revised_at = fencepost.now_()
   where c.name = p_name returning c.revision into revision;
  if revision is null then perform fencepost.refuse_(format('there is no channel %s', left(p_name, 80))); end if;
end $f$;

-- All channels, by name. The secret reference says where the secret is; it is not the secret.
create function fencepost.channel_list() returns table (
  name text, sender text, settings jsonb, secret_reference text, slots smallint, rate float8, burst float8, on_uncertain text, policy jsonb,
  payload_bytes_max int, revision int, paused boolean, paused_for_seconds float8, pause_reason text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $f$
  select c.name, c.sender, c.settings, c.secret_reference, c.slots, c.rate, c.burst, c.on_uncertain, c.policy, c.payload_bytes_max, c.revision,
         c.paused_until > fencepost.now_(), case when c.paused_until > fencepost.now_() then fencepost.seconds_until_(c.paused_until) end,
         case when c.paused_until > fencepost.now_() then c.pause_reason end
    from fencepost.channel c order by c.name collate "C" $f$;

-- ---------------------------------------------------------------------------------------------------------------- status

-- The first rows in order of the index: the ones due (or those due later), never more than asked.
create function fencepost.status_rows_(p_channel smallint, p_priority smallint, p_later boolean, p_now timestamptz, p_at_most int)
returns setof fencepost.queue language plpgsql stable as $f$
begin
  if p_later then
    return query select q.* from fencepost.queue q where q.channel = p_channel and q.priority = p_priority and q.due_at > p_now order by q.due_at limit p_at_most;
  else
    return query select q.* from fencepost.queue q where q.channel = p_channel and q.priority = p_priority and q.due_at <= p_now order by q.due_at limit p_at_most;
  end if;
end $f$;

-- One row a channel. Counting stops after p_at_most rows of each (channel, priority, due or scheduled) and of each (parked kind): the figures are then
-- lower bounds and say so (open_more, parked_more). withheld: recipients said to be gone that nobody is told of before an operator's word. The oldest due age is exact. Null p_at_most: count everything.
--   due: may be claimed now (gates apart) · scheduled: due later · leased · in_doubt: of these, an earlier attempt is unknown, or its lease ran out
create function fencepost.status_report(p_at_most int default 50000) returns table (
  channel text, sender text, due bigint, scheduled bigint, leased bigint, in_doubt bigint, open_more boolean, oldest_due_seconds float8,
  dead bigint, uncertain bigint, parked_more boolean, paused boolean, paused_for_seconds float8, pause_reason text,
  skip_reason text, skipped_at text, skipped_for_seconds float8, withheld bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set jit = off set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off as $f$
#variable_conflict use_column
declare v_now timestamptz := fencepost.now_();
begin
  return query
    with parked as materialized (
      select n.channel, k.kind, count(*) as count
        from unnest(enum_range(null::fencepost.kind)) as k(kind),
          lateral (select c.notification_id from fencepost.closed c
                    where c.kind = k.kind and c.kind in ('dead', 'uncertain') order by c.closed_at desc limit p_at_most) c,
          lateral (select n.channel from fencepost.notification n where n.id = c.notification_id offset 0) n
       group by n.channel, k.kind),
    full_ as (select k.kind, sum(k.count) >= p_at_most as stopped from parked k group by k.kind)
    select c.name, c.sender, o.due, o.scheduled, o.leased, o.in_doubt, coalesce(o.more, false), h.oldest,
           coalesce((select p.count from parked p where p.channel = c.id and p.kind = 'dead'), 0),
           coalesce((select p.count from parked p where p.channel = c.id and p.kind = 'uncertain'), 0),
           coalesce((select bool_or(f.stopped) from full_ f), false),
           c.paused_until > v_now, case when c.paused_until > v_now then fencepost.seconds_until_(c.paused_until) end,
           case when c.paused_until > v_now then c.pause_reason end,
           case when c.skip_revision = c.revision then c.skip_reason end,           -- what was said of an earlier revision is no longer true
           case when c.skip_revision = c.revision then fencepost.instant_(c.skipped_at) end,
           case when c.skip_revision = c.revision then -fencepost.seconds_until_(c.skipped_at) end,
           (select count(*) from (select 1 from fencepost.unregistered u where u.channel = c.id and u.place is null and u.withheld is not null limit p_at_most) u)
      from (select * from fencepost.channel c order by c.name collate "C" offset 0) c,
        lateral (
          select coalesce(sum(s.due), 0)::bigint as due, coalesce(sum(s.scheduled), 0)::bigint as scheduled, coalesce(sum(s.leased), 0)::bigint as leased,
                 coalesce(sum(s.in_doubt), 0)::bigint as in_doubt, bool_or(s.seen >= p_at_most) as more
            from unnest('{0,1,2}'::smallint[]) as p(priority), unnest('{f,t}'::boolean[]) as l(later),
              lateral (select count(*) as seen,
                              count(*) filter (where not l.later and q.lease_until <= v_now) as due, count(*) filter (where l.later and q.lease_until <= v_now) as scheduled,
                              count(*) filter (where q.lease_until > v_now) as leased,
                              count(*) filter (where q.doubt or q.run_id <> fencepost.nobody() and q.lease_until <= v_now) as in_doubt
                         from fencepost.status_rows_(c.id, p.priority, l.later, v_now, p_at_most) q) s) o,
        lateral (
          select extract(epoch from v_now - min(f.due_at))::float8 as oldest
            from unnest('{0,1,2}'::smallint[]) as p(priority),
              lateral (select q.due_at from fencepost.queue q where q.channel = c.id and q.priority = p.priority and q.due_at <= v_now and q.lease_until <= v_now
                        order by q.due_at limit 1) f) h;
end $f$;

-- ---------------------------------------------------------------------------------------------------------------- selectors

-- Two instants of the database for a selector, from instants or from "so many seconds ago" (null: no bound; the end is never later than now, so that what a
-- command reopens and what is parked again meanwhile is not met twice by the same command).
create function fencepost.time_range(p_since timestamptz, p_since_seconds float8, p_until timestamptz, p_until_seconds float8, out since timestamptz, out until timestamptz)
language sql stable security definer set search_path = pg_catalog, pg_temp as $f$
  select coalesce(p_since, fencepost.now_() - p_since_seconds * interval '1 s'),
         least(coalesce(p_until, fencepost.now_() - greatest(p_until_seconds, 0) * interval '1 s', fencepost.now_()), fencepost.now_()) $f$;

-- A page of parked notifications, oldest first, after (p_after_at, p_after_id). Reads the partial index in order.
create function fencepost.parked_page(p_kind fencepost.kind, p_channel text, p_reason text, p_since timestamptz, p_until timestamptz,
                                      p_after_at timestamptz, p_after_id bigint, p_limit int)
returns table (id bigint, closed_at timestamptz)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $f$
#variable_conflict use_column
begin
  if p_kind not in ('dead', 'uncertain') then perform fencepost.refuse_('only dead and uncertain notifications are parked'); end if;
  perform fencepost.known_channel_(p_channel);
  return query
    select c.notification_id, c.closed_at from fencepost.closed c join fencepost.notification n on n.id = c.notification_id
     where c.kind = p_kind and c.kind in ('dead', 'uncertain')
       and c.closed_at >= coalesce(p_after_at, p_since, '-infinity') and (p_after_at is null or (c.closed_at, c.notification_id) > (p_after_at, p_after_id))
       and c.closed_at <= coalesce(p_until, 'infinity') and (p_reason is null or c.reason = p_reason)
       and (p_channel is null or n.channel = (select k.id from fencepost.channel k where k.name = p_channel))
     order by c.closed_at, c.notification_id limit least(p_limit, 10000);
end $f$;

-- A page of open notifications by id, enqueued in the range. Reads the primary key in order.
create function fencepost.open_page(p_channel text, p_in_doubt boolean, p_since timestamptz, p_until timestamptz, p_after_id bigint, p_limit int)
returns table (id bigint) language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $f$
#variable_conflict use_column
begin
  perform fencepost.known_channel_(p_channel);
  return query
    select q.notification_id from fencepost.queue q join fencepost.notification n on n.id = q.notification_id
     where q.notification_id > coalesce(p_after_id, 0) and (p_channel is null or q.channel = (select k.id from fencepost.channel k where k.name = p_channel))
       and (p_in_doubt is null or q.doubt = p_in_doubt)
       and n.created_at >= coalesce(p_since, '-infinity') and n.created_at <= coalesce(p_until, 'infinity')
     order by q.notification_id limit least(p_limit, 10000);
end $f$;

create function fencepost.known_channel_(p_channel text) returns void language plpgsql stable as $f$
begin
  if p_channel is not null and not exists (select 1 from fencepost.channel c where c.name = p_channel) then
    perform fencepost.refuse_(case when p_channel ~ '^[a-z][a-z0-9_-]{0,62}$' then 'there is no channel ' || p_channel else 'no channel can have this name' end);
  end if;
end $f$;

-- ---------------------------------------------------------------------------------------------------------------- the story of one notification

create function fencepost.inspect_channel_(p_channel smallint) returns jsonb language sql stable as $f$
  select jsonb_build_object('name', c.name, 'sender', c.sender, 'on_uncertain', c.on_uncertain, 'policy', c.policy, 'revision', c.revision,
                            'paused', c.paused_until > fencepost.now_(), 'pause_reason', case when c.paused_until > fencepost.now_() then c.pause_reason end,
                            'paused_for_seconds', case when c.paused_until > fencepost.now_() then fencepost.seconds_until_(c.paused_until) end,
                            'skip_reason', case when c.skip_revision = c.revision then c.skip_reason end,
                            'skipped_at', case when c.skip_revision = c.revision then fencepost.instant_(c.skipped_at) end)
    from fencepost.channel c where c.id = p_channel $f$;

create function fencepost.inspect_open_(p_id bigint) returns jsonb language sql stable as $f$
  select jsonb_build_object('fence', q.fence, 'attempts', q.attempts, 'interruptions', q.interruptions, 'doubt', q.doubt, 'resend', q.resend,
                            'due_at', fencepost.instant_(q.due_at), 'due_in_seconds', fencepost.seconds_until_(q.due_at),
                            'run', nullif(q.run_id, fencepost.nobody()), 'invocation', r.invocation,
                            'claimed_at', case when q.run_id <> fencepost.nobody() then fencepost.instant_(q.claimed_at) end,
                            'lease_until', case when q.run_id <> fencepost.nobody() then fencepost.instant_(q.lease_until) end,
                            'lease_left_seconds', case when q.run_id <> fencepost.nobody() then fencepost.seconds_until_(q.lease_until) end)
    from fencepost.queue q left join fencepost.run r on r.id = q.run_id where q.notification_id = p_id $f$;

create function fencepost.inspect_closed_(p_id bigint) returns jsonb language sql stable as $f$
  select jsonb_build_object('kind', c.kind, 'reason', c.reason, 'at', fencepost.instant_(c.closed_at), 'fence', c.fence, 'attempts', c.attempts)
    from fencepost.closed c where c.notification_id = p_id $f$;

create function fencepost.inspect_attempts_(p_id bigint) returns jsonb language sql stable as $f$
  select coalesce(jsonb_agg(jsonb_build_object(
           'fence', a.fence, 'run', nullif(a.run_id, fencepost.nobody()), 'invocation', r.invocation, 'run_deadline_at', fencepost.instant_(r.deadline_at), 'run_ended_at', fencepost.instant_(r.ended_at),
           'claimed_at', fencepost.instant_(a.claimed_at), 'at', fencepost.instant_(a.at), 'took_ms', a.took_ms, 'outcome', a.outcome, 'phase', a.phase,
           'status', a.status, 'reference', a.reference, 'digest', encode(a.digest, 'hex'), 'detail', a.detail, 'taken_over', a.taken_over, 'closing', a.closing)
           order by a.fence), '[]')
    from fencepost.attempts a left join fencepost.run r on r.id = a.run_id where a.notification_id = p_id $f$;

create function fencepost.inspect_evidence_(p_id bigint) returns jsonb language sql stable as $f$
  select coalesce(jsonb_agg(jsonb_build_object(
           'fence', e.fence, 'run', nullif(e.run_id, fencepost.nobody()), 'source', e.source, 'outcome', e.outcome, 'at', fencepost.instant_(e.at),
           'reference', e.reference, 'detail', e.detail) order by e.at, e.fence), '[]')
    from fencepost.evidence e where e.notification_id = p_id $f$;

create function fencepost.inspect_operations_(p_id bigint) returns jsonb language sql stable as $f$
  select coalesce(jsonb_agg(jsonb_build_object('at', fencepost.instant_(o.at), 'what', o.what, 'fence', o.fence, 'was', o.was, 'who', o.who, 'why', o.why) order by o.at, o.fence), '[]')
    from fencepost.operation o where o.notification_id = p_id $f$;

-- Journal lines that mention it, of the runs known to have held it (no index leads from a notification to the journal: it would cost every exchange).
create function fencepost.inspect_journal_(p_id bigint) returns jsonb language sql stable set jit = off as $f$
  with r as materialized (
    select a.run_id from fencepost.attempts a where a.notification_id = p_id and a.run_id is not null
    union select e.run_id from fencepost.evidence e where e.notification_id = p_id
    union select q.run_id from fencepost.queue q where q.notification_id = p_id)
  select coalesce(jsonb_agg(to_jsonb(l) order by l.at, l.seq), '[]') from (
    select j.run_id as run, j.seq, fencepost.instant_(j.at) as at,
           coalesce(p_id = any(j.claimed), false) as claimed, coalesce(p_id = any(j.renewed), false) as renewed, coalesce(p_id = any(j.lost), false) as lost,
           case substr(j.verdicts, s.place::int, 1)
                when 'A' then 'applied' when 'R' then 'repeated' when 'L' then 'late' when 'C' then 'conflict' when 'U' then 'unknown' end as verdict,
           s.fence
      from r join fencepost.journal j on j.run_id = r.run_id
      left join lateral (select s.fence, s.place from unnest(j.settled, j.settled_fences) with ordinality as s(id, fence, place) where s.id = p_id) s on true
     where p_id = any(j.claimed) or p_id = any(j.renewed) or p_id = any(j.settled)
     order by j.at desc, j.seq desc limit 100) l $f$;

-- All that is known of it, in one snapshot; null where there is no such notification. Recipient, dedupe key (people put addresses there) and payload
-- only when asked for. Instants as text, and as seconds from now (negative: past), so that a reader needs no clock.
create function fencepost.inspect(p_id bigint, p_recipient boolean default false, p_payload boolean default false) returns jsonb
language sql stable security definer set search_path = pg_catalog, pg_temp as $f$
  select jsonb_build_object(
           'id', n.id, 'now', fencepost.instant_(fencepost.now_()), 'idempotency_key', n.idempotency_key, 'priority', n.priority, 'replay_of', n.replay_of,
           'on_uncertain', n.on_uncertain, 'created_at', fencepost.instant_(n.created_at), 'due_at', fencepost.instant_(n.due_at),
           'expires_at', fencepost.instant_(n.expires_at), 'expires_in_seconds', fencepost.seconds_until_(n.expires_at),
           'recipient', case when p_recipient then n.recipient end, 'dedupe_key', case when p_recipient then n.dedupe_key end,
           'payload', case when p_payload then n.payload end,
           'channel', fencepost.inspect_channel_(n.channel), 'open', fencepost.inspect_open_(n.id), 'closed', fencepost.inspect_closed_(n.id),
           'attempts', fencepost.inspect_attempts_(n.id), 'evidence', fencepost.inspect_evidence_(n.id), 'journal', fencepost.inspect_journal_(n.id), 'operations', fencepost.inspect_operations_(n.id))
    from fencepost.notification n where n.id = p_id $f$;

-- ---------------------------------------------------------------------------------------------------------------- in doubt

-- What is in doubt, oldest first, with the facts of the latest attempt that left it so: open ones (in doubt, or held by a run whose lease is over) and
-- those closed as uncertain. Ages count from that attempt, or from when it was closed. p_reason: of closed ones only. No recipient, no payload.
create function fencepost.uncertain_page(p_channel text, p_reason text, p_since timestamptz, p_until timestamptz, p_limit int)
returns table (id bigint, channel text, state text, reason text, policy text, since text, age_seconds float8, attempts int, fence bigint,
               outcome text, phase text, status int, reference text, detail text)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off as $f$
#variable_conflict use_column
declare v_now timestamptz := fencepost.now_(); v_limit int := least(greatest(p_limit, 1), 10000);
begin
  perform fencepost.known_channel_(p_channel);
  return query
    with here as (
      select q.notification_id, case when q.run_id = fencepost.nobody() then 'waits' when q.lease_until > v_now then 'leased' else 'abandoned' end as state, null::text as reason,
             coalesce(a.at, q.claimed_at) as at, q.attempts, a.fence, a.outcome, a.phase, a.status, a.reference, a.detail
        from fencepost.queue q
        left join lateral (select a.* from fencepost.attempt a where a.notification_id = q.notification_id and a.outcome = 'uncertain' order by a.fence desc limit 1) a on true
       where p_reason is null and (q.doubt or q.run_id <> fencepost.nobody() and q.lease_until <= v_now)
         and (p_channel is null or q.channel = (select k.id from fencepost.channel k where k.name = p_channel))
      union all
      select * from (
        select c.notification_id, 'held', c.reason, c.closed_at, c.attempts, coalesce(a.fence, c.fence), coalesce(a.outcome, c.outcome), coalesce(a.phase, c.phase),
               coalesce(a.status, c.status), coalesce(a.reference, c.reference), coalesce(a.detail, c.detail)
          from fencepost.closed c
          join fencepost.notification n on n.id = c.notification_id
          left join lateral (select a.* from fencepost.attempt a where c.outcome is distinct from 'uncertain' and a.notification_id = c.notification_id and a.outcome = 'uncertain'
                              order by a.fence desc limit 1) a on true
         where c.kind = 'uncertain' and c.kind in ('dead', 'uncertain') and (p_reason is null or c.reason = p_reason)
           and c.closed_at >= coalesce(p_since, '-infinity') and c.closed_at <= coalesce(p_until, 'infinity')
           and (p_channel is null or n.channel = (select k.id from fencepost.channel k where k.name = p_channel))
         order by c.closed_at, c.notification_id limit v_limit) closed)
    select h.notification_id, c.name, h.state, h.reason, coalesce(n.on_uncertain, c.on_uncertain), fencepost.instant_(h.at), -fencepost.seconds_until_(h.at), h.attempts::int, h.fence,
           h.outcome::text, h.phase::text, h.status::int, h.reference, h.detail
      from here h join fencepost.notification n on n.id = h.notification_id join fencepost.channel c on c.id = n.channel
     where h.at >= coalesce(p_since, '-infinity') and h.at <= coalesce(p_until, 'infinity')
     order by h.at, h.notification_id limit v_limit;
end $f$;
