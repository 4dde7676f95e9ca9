-- Not numbered: `migrate` runs it as the schema's owner at the end of every file's transaction and at its own end. Who may call what, in one table.
-- A name means every signature of it (old signatures live one release). What no row names is for the owner alone; so is, always, what ends in _.
-- The roles can write no table: they have only these functions. The reader sees every table but recipients, dedupe keys and payloads.
do $$
declare v_role text; v_call text; v_roles text[];
begin
  select coalesce(array_agg(r.rolname::text), '{}') into v_roles from pg_roles r where r.rolname in ('fencepost_producer', 'fencepost_worker', 'fencepost_operator', 'fencepost_reader');
  foreach v_role in array array['public'::text] || v_roles loop
    v_role := case v_role when 'public' then 'public' else quote_ident(v_role) end;
    execute format('revoke all on schema fencepost from %s', v_role);
    execute format('revoke all on all tables in schema fencepost from %s', v_role);
    execute format('revoke all on all sequences in schema fencepost from %s', v_role);
    execute format('revoke all on all routines in schema fencepost from %s', v_role);
    if v_role <> 'public' then execute format('grant usage on schema fencepost to %s', v_role); end if;
  end loop;
  for v_role, v_call in
    select 'fencepost_' || g.role, p.oid::regprocedure::text
      from (values
        ('producer', 'enqueue'), ('producer', 'enqueue_many'), ('producer', 'status'), ('producer', 'unregistered'),
        ('worker', 'start_run'), ('worker', 'exchange'), ('worker', 'has_work'), ('worker', 'evidence'), ('worker', 'bound_to'), ('worker', 'paused_channels'),
        ('worker', 'note_skips'), ('worker', 'prune'), ('worker', 'evidence_unregistered'),
        ('worker', 'backlog'), ('worker', 'begin_wave'), ('worker', 'end_wave'),
        ('worker', 'take_receipts'), ('worker', 'receipt_channels'), ('worker', 'tell_receipts'), ('worker', 'callback'), ('worker', 'callback_channels'),
        ('operator', 'enqueue'), ('operator', 'enqueue_many'), ('operator', 'status'), ('operator', 'boundary_missing'),
        ('operator', 'cancel'), ('operator', 'redrive'), ('operator', 'resolve'), ('operator', 'evidence'), ('operator', 'quarantine'),
        ('operator', 'bound_to'), ('operator', 'bind'), ('operator', 'channel_apply'), ('operator', 'channel_pause'), ('operator', 'channel_resume'),
        ('operator', 'channel_list'), ('operator', 'status_report'), ('operator', 'time_range'), ('operator', 'parked_page'), ('operator', 'open_page'),
        ('operator', 'unregistered'), ('operator', 'unregistered_page'), ('operator', 'uncertain_page'), ('operator', 'unregistered_resolve'), ('operator', 'evidence_unregistered'), ('operator', 'callback'),
        ('operator', 'inspect'), ('operator', 'conservation'), ('operator', 'conflicts'),
        ('operator', 'prune'), ('operator', 'prune_strays'), ('operator', 'prune_closed'), ('operator', 'prunable'), ('operator', 'retention'),
        ('operator', 'begin_command'), ('operator', 'command_enqueue'), ('operator', 'command_move'), ('operator', 'command_replay'), ('operator', 'command_continued'),
        ('operator', 'end_command'), ('operator', 'run_evidence'), ('operator', 'command_status'), ('operator', 'delivered_page'), ('reader', 'command_status'),
        ('reader', 'status'), ('reader', 'status_report'), ('reader', 'channel_list'), ('reader', 'bound_to'), ('reader', 'boundary_missing'),
        ('reader', 'conservation'), ('reader', 'conflicts')) as g(role, name)
      join pg_proc p on p.proname = g.name and p.pronamespace = 'fencepost'::regnamespace
     where 'fencepost_' || g.role = any(v_roles)
  loop
    execute format('grant execute on function %s to %I', v_call, v_role);
  end loop;
  if 'fencepost_reader' = any(v_roles) then
    for v_call in
      select format('select (%s) on fencepost.%I', string_agg(quote_ident(a.attname), ', ' order by a.attnum), c.relname)
        from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
       where c.relnamespace = 'fencepost'::regnamespace and c.relkind in ('r', 'p', 'v')
         and not (c.relname = 'notification' and a.attname in ('recipient', 'payload', 'dedupe_key'))
       group by c.relname
    loop
      execute format('grant %s to fencepost_reader', v_call);
    end loop;
  end if;
end $$;
