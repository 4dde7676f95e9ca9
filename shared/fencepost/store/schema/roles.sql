-- Not numbered: `migrate` runs it at the end, every time, as whoever connects. The roles, where this user may make them.
--   fencepost_producer  cannot log in: grant it to the role your application logs in with.
--   the others          may log in as soon as somebody gives them a password (or rds_iam); without one nobody can.
-- Timeouts are settings of the role in this database, because a pooler shares sessions and a function's own SET cannot bound its statement. They hold for
-- who logs in as that role: a login role that is a member needs them of its own (docs/producers.md).
do $$
declare v_role text; v_setting text; v_value text;
begin
  for v_role in select unnest('{fencepost_producer,fencepost_worker,fencepost_operator,fencepost_reader}'::text[]) loop
    begin
      if not exists (select from pg_roles r where r.rolname = v_role) then
        execute format('create role %I %s', v_role, case v_role when 'fencepost_producer' then 'nologin' else 'login' end);
      end if;
    exception when insufficient_privilege or duplicate_object or unique_violation then null;   -- another database of this server may be making it too
    end;
  end loop;
  for v_role, v_setting, v_value in values
    ('fencepost_worker',   'statement_timeout', '10s'), ('fencepost_worker',   'lock_timeout', '4s'),
    ('fencepost_worker',   'idle_in_transaction_session_timeout', '10s'),
    ('fencepost_operator', 'statement_timeout', '60s'), ('fencepost_operator', 'lock_timeout', '5s'),
    ('fencepost_operator', 'idle_in_transaction_session_timeout', '60s'),
    ('fencepost_reader',   'statement_timeout', '60s'), ('fencepost_reader',   'lock_timeout', '5s'),
    ('fencepost_reader',   'idle_in_transaction_session_timeout', '60s')
  loop
    begin
      if exists (select from pg_roles r where r.rolname = v_role)
         and not exists (select from pg_db_role_setting s join pg_roles r on r.oid = s.setrole join pg_database d on d.oid = s.setdatabase
                          where r.rolname = v_role and d.datname = current_database() and s.setconfig::text[] @> array[v_setting || '=' || v_value]) then
        execute format('alter role %I in database %I set %s = %L', v_role, current_database(), v_setting, v_value);
      end if;
    exception when insufficient_privilege then null;                                           -- somebody else's role: its timeouts are theirs
    end;
  end loop;
end $$;
