-- The start of a run. It creates the run's row (saying it again is harmless), after everything that would make running a mistake:
-- another installation's database, code older than the database allows, an isolation level the exchange cannot be right under.
-- Refusals carry SQLSTATE FP001 and one sentence for the operator.

create function fencepost.check_installation_(p_installation text, p_version int) returns void language plpgsql as $f$
declare v_here fencepost.installation;
begin
  select * into v_here from fencepost.installation;
  if v_here.name is null then
    raise exception 'this database is bound to no installation yet, and FENCEPOST_INSTALLATION is %: bind it first (fencepost bind %)', p_installation, p_installation using errcode = 'FP001';
  elsif v_here.name is distinct from p_installation then
    raise exception 'this database belongs to installation %, and FENCEPOST_INSTALLATION is %', v_here.name, p_installation using errcode = 'FP001';
  elsif p_version is null or p_version < v_here.minimum_code_version then
    raise exception 'this code has version %, and the database needs at least % (minimum_code_version): deploy newer code', p_version, v_here.minimum_code_version using errcode = 'FP001';
  end if;
end $f$;

create function fencepost.check_isolation_() returns void language plpgsql as $f$
begin
  if current_setting('default_transaction_isolation') <> 'read committed' or current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'default_transaction_isolation is %, and the exchange is right only under read committed: set it for this role or database',
      current_setting('default_transaction_isolation') using errcode = 'FP001';
  end if;
end $f$;

create function fencepost.start_run(p_run uuid, p_installation text, p_version int, p_invocation text, p_deadline_in float8, p_channels text[])
returns table (id smallint, name text, sender text, settings jsonb, secret_reference text, slots smallint, rate float8, on_uncertain text, policy jsonb,
               revision int, paused_for float8, pause_reason text, skipped text)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $f$
#variable_conflict use_column
declare v_now timestamptz := fencepost.now_(); v_all boolean := coalesce(cardinality(p_channels), 0) = 0;
begin
  perform fencepost.check_installation_(p_installation, p_version);
  perform fencepost.check_isolation_();
  perform fencepost.check_channels_(p_channels);
  insert into fencepost.run (id, started_at, seen_at, deadline_at, invocation, code_version)
  values (p_run, v_now, v_now, v_now + least(greatest(p_deadline_in, 0), 86400) * interval '1 s', left(p_invocation, 200), p_version) on conflict do nothing;
  return query
    select c.id, c.name, c.sender, c.settings, c.secret_reference, c.slots, c.rate, c.on_uncertain, c.policy, c.revision,
           case when c.paused_until > v_now then date_part('epoch', least(c.paused_until, v_now + interval '1 day')) - date_part('epoch', v_now) else 0 end,
           -- of a breaker also for a while after: whoever sends next sends a probe
           case when c.paused_until > v_now or c.pause_reason like 'breaker %' and c.paused_until > v_now - interval '10 min' then c.pause_reason end,
           case when c.skip_revision = c.revision then c.skip_reason end
      from fencepost.channel c where v_all or c.name = any(p_channels) order by c.id;
end $f$;

-- The channels a run cannot send on (why), and those it can although another could not (null). start_run told what is known, so that only a change is
-- said here: a run that finds what was found before says nothing. It holds under the revision the run read, and a busy row is left to the next run.
-- Answers how many were written.
create function fencepost.note_skips(p_run uuid, p_channels smallint[], p_revisions int[], p_reasons text[]) returns int
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off as $f$
declare v_written int;
begin
  if not exists (select 1 from fencepost.run r where r.id = p_run and r.ended_at is null) then return 0; end if;
  with w as materialized (select w.channel, w.revision, left(w.reason, 500) as reason from unnest(p_channels, p_revisions, p_reasons) as w(channel, revision, reason)),
  k as materialized (
    select c.id, w.revision, w.reason from w join fencepost.channel c on c.id = w.channel and c.revision = w.revision
     where case when c.skip_revision = c.revision then c.skip_reason end is distinct from w.reason for update of c skip locked)
  update fencepost.channel c
     set skip_reason = k.reason, skip_revision = case when k.reason is not null then k.revision end, skipped_at = case when k.reason is not null then fencepost.now_() end
    from k where c.id = k.id;
  get diagnostics v_written = row_count;
  return v_written;
end $f$;
