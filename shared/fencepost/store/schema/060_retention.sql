-- Retention: what may go, in steps that are small and never wait.
--   by every run, unasked    runs that ended (or, killed, whose deadline passed) longer ago than installation.keep_journal, each with its journal;
--                            events of unregistered recipients; commands, thirty days after the last word of them at least
--   only when asked          closed notifications, whole; never open or parked ones, and none whose dedupe key is still promised
-- A run is never longer than a day, so its start orders what is old, and journal_run leads to its rows: nothing reads the whole journal, and an exchange
-- pays for no index of ages. (A brin on journal.at would not do: rows of today in the pages of rows that went make every range look old.)

-- From when on journal and runs are kept. Null: bound to nobody yet, and nothing goes.
create function fencepost.kept_from_() returns timestamptz language sql stable as $f$
  select fencepost.now_() - i.keep_journal from fencepost.installation i $f$;

-- One step: p_limit rows at most, runs and journal together, oldest runs first; then events of unregistered recipients and commands, as old. A run's row goes after its journal. What another holds is left to it.
-- more: the limit ended it.
create function fencepost.prune(p_limit int default 1000) returns table (journal int, runs int, events int, commands int, more boolean) language plpgsql security definer
set search_path = pg_catalog, pg_temp set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off as $f$
#variable_conflict use_column
declare v_from timestamptz := fencepost.kept_from_(); v_left int := least(greatest(p_limit, 1), 10000); v_run uuid; v_gone int;
begin
  journal := 0;
  runs := 0;
  events := 0;
  commands := 0;
  for v_run in
    select r.id from fencepost.run r where r.started_at < v_from and coalesce(r.ended_at, r.deadline_at, r.seen_at) < v_from
     order by r.started_at limit v_left for update skip locked
  loop
    delete from fencepost.journal j where j.ctid = any(array(select j.ctid from fencepost.journal j where j.run_id = v_run limit v_left));
    get diagnostics v_gone = row_count;
    journal := journal + v_gone;
    v_left := v_left - v_gone;
    exit when v_left = 0;
    delete from fencepost.run r where r.id = v_run;
    runs := runs + 1;
    v_left := v_left - 1;
    exit when v_left = 0;
  end loop;
  if v_left > 0 then
    events := fencepost.prune_unregistered_(v_from, v_left);
    v_left := v_left - events;
  end if;
  if v_left > 0 then
    select p.rows, p.commands into v_gone, commands from fencepost.prune_commands_(v_from, v_left) p;
    v_left := v_left - v_gone;
  end if;
  more := v_left = 0;
  return next;
end $f$;

-- Journal rows of runs that are not here: what a sandbox said that woke up after its run was gone. Looks at all that is old: for a command, not for a run.
create function fencepost.prune_strays(p_limit int default 10000) returns int language plpgsql security definer
set search_path = pg_catalog, pg_temp set jit = off as $f$
declare v_from timestamptz := fencepost.kept_from_(); v_gone int;
begin
  delete from fencepost.journal j
   where j.ctid = any(array(select j.ctid from fencepost.journal j
                             where j.at < v_from and not exists (select 1 from fencepost.run r where r.id = j.run_id) limit p_limit));
  get diagnostics v_gone = row_count;
  return v_gone;
end $f$;

-- What prune and prune_strays would take, counted to the end.
create function fencepost.prunable() returns table (journal bigint, runs bigint, events bigint, commands bigint, strays bigint) language sql stable security definer
set search_path = pg_catalog, pg_temp set jit = off as $f$
  with r as materialized (
    select r.id from fencepost.run r
     where r.started_at < fencepost.kept_from_() and coalesce(r.ended_at, r.deadline_at, r.seen_at) < fencepost.kept_from_())
  select (select count(*) from fencepost.journal j where j.run_id in (select r.id from r)), (select count(*) from r),
         (select count(*) from fencepost.unregistered u where u.at < fencepost.kept_from_()),
         (select count(*) from fencepost.command c where greatest(c.begun_at, c.seen_at) < fencepost.commands_kept_from_(fencepost.kept_from_())),
         (select count(*) from fencepost.journal j
           where j.at < fencepost.kept_from_() and not exists (select 1 from fencepost.run k where k.id = j.run_id)) $f$;

-- A page of closed notifications by id: p_limit are looked at, and those closed longer ago go whole: body, attempts, evidence, operations. What evidence
-- or somebody's word made of one counts from that word: closed_at stays the end of its attempt. Parked ones stay, and so does one whose dedupe key is still promised (kept_for_key). Order of locks as everywhere (notifications, then the rest), but what
-- another holds is left alone; how it stands is read after the lock. p_dry: counts only.
create function fencepost.prune_closed(p_older_than float8, p_after_id bigint, p_limit int, p_dry boolean default false)
returns table (notifications int, attempts int, evidence int, operations int, kept_for_key int, after_id bigint, more boolean)
language plpgsql security definer
set search_path = pg_catalog, pg_temp set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off as $f$
#variable_conflict use_column
declare
  v_before timestamptz; v_keys timestamptz; v_old bigint[]; v_free bigint[]; v_ids bigint[];
  v_kinds fencepost.kind[] := '{delivered,expired,cancelled}';
begin
  if p_older_than is null or not p_older_than between 86400 and 3153600000 then
    perform fencepost.refuse_('closed notifications are kept for a day at least, and a hundred years at most are asked for');
  end if;
  v_before := fencepost.now_() - p_older_than * interval '1 s';
  select fencepost.now_() - i.keep_dedupe_keys into v_keys from fencepost.installation i;
  select coalesce(array_agg(s.id) filter (where s.old), '{}'), max(s.id), count(*) = p_limit into v_old, after_id, more
    from (select c.notification_id as id, c.kind = any(v_kinds) and c.closed_at < v_before
                   and (c.reason is distinct from 'evidence' or not fencepost.turned_since_(c.notification_id, v_before)) as old
            from fencepost.closed c where c.notification_id > coalesce(p_after_id, 0) order by c.notification_id limit p_limit) s;
  select coalesce(array_agg(w.id), '{}') into v_free
    from unnest(v_old) as w(id), lateral (select 1 from fencepost.notification n where n.id = w.id and (n.dedupe_key is null or n.created_at < v_keys) offset 0) n;
  kept_for_key := cardinality(v_old) - cardinality(v_free);
  if not p_dry then v_free := fencepost.lock_closed_(v_free, v_kinds, v_before); end if;
  notifications := cardinality(v_free);
  if p_dry then
    attempts := (select count(*) from unnest(v_free) as w(id), lateral (select 1 from fencepost.attempt a where a.notification_id = w.id offset 0) a);
    evidence := (select count(*) from unnest(v_free) as w(id), lateral (select 1 from fencepost.evidence e where e.notification_id = w.id offset 0) e);
    operations := (select count(*) from unnest(v_free) as w(id), lateral (select 1 from fencepost.operation o where o.notification_id = w.id offset 0) o);
  else
    delete from fencepost.attempt t using unnest(v_free) as w(id) where t.notification_id = any(array[w.id]);
    get diagnostics attempts = row_count;
    delete from fencepost.evidence t using unnest(v_free) as w(id) where t.notification_id = any(array[w.id]);
    get diagnostics evidence = row_count;
    delete from fencepost.operation t using unnest(v_free) as w(id) where t.notification_id = any(array[w.id]);
    get diagnostics operations = row_count;
    delete from fencepost.closed t using unnest(v_free) as w(id) where t.notification_id = any(array[w.id]);
    delete from fencepost.notification t using unnest(v_free) as w(id) where t.id = any(array[w.id]);
  end if;
  return next;
end $f$;

-- Whether evidence made of a closed one what it is, not so long ago. (Whatever else is done to it opens it again, or changes nothing of how it stands.)
create function fencepost.turned_since_(p_id bigint, p_at timestamptz) returns boolean language plpgsql stable as $f$
begin
  return (select 1 from fencepost.operation o where o.notification_id = p_id and o.at >= p_at limit 1) is not null;
end $f$;

-- Of these, what nobody else holds and what is still so after the lock: redrive, resolve and evidence take the notification first.
create function fencepost.lock_closed_(p_ids bigint[], p_kinds fencepost.kind[], p_before timestamptz) returns bigint[] language plpgsql as $f$
declare v_locked bigint[]; v_ids bigint[];
begin
  select coalesce(array_agg(n.id), '{}') into v_locked
    from unnest(p_ids) as w(id), lateral (select n.id from fencepost.notification n where n.id = w.id for update skip locked) n;
  select coalesce(array_agg(c.id), '{}') into v_ids
    from unnest(v_locked) as w(id),
      lateral (select c.notification_id as id from fencepost.closed c where c.notification_id = w.id and c.kind = any(p_kinds) and c.closed_at < p_before
                 and (c.reason is distinct from 'evidence' or not fencepost.turned_since_(w.id, p_before)) for update skip locked) c;
  return v_ids;
end $f$;

-- How long journal and runs are kept, and dedupe keys from enqueue on, in seconds. Null: as it is.
create function fencepost.retention(p_journal float8 default null, p_dedupe_keys float8 default null, out journal float8, out dedupe_keys float8)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $f$
begin
  if not coalesce(p_journal, 86400) between 86400 and 3153600000 or not coalesce(p_dedupe_keys, 86400) between 86400 and 3153600000 then
    perform fencepost.refuse_('what is kept is kept for a day at least, and for a hundred years at most');
  end if;
  update fencepost.installation i
     set keep_journal = coalesce(p_journal * interval '1 s', i.keep_journal), keep_dedupe_keys = coalesce(p_dedupe_keys * interval '1 s', i.keep_dedupe_keys)
   where p_journal is not null or p_dedupe_keys is not null;
  select date_part('epoch', i.keep_journal), date_part('epoch', i.keep_dedupe_keys) into journal, dedupe_keys from fencepost.installation i;
  if journal is null then perform fencepost.refuse_('this database is bound to no installation yet: bind it first (fencepost bind NAME)'); end if;
end $f$;
