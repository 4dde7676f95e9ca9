-- Not numbered: `migrate` runs it first, as whoever connects. The schema and its owner, where they are not there yet.
-- Owner: fencepost_owner, who cannot log in, where this user may make roles and act as one; else this user, and the boundary is missing (fencepost.boundary_missing).
do $$
declare v_before text := current_setting('role'); v_owner text := current_user;
begin
  if to_regnamespace('fencepost') is not null then return; end if;
  begin
    if not exists (select from pg_roles r where r.rolname = 'fencepost_owner') then create role fencepost_owner nologin; end if;
  exception when insufficient_privilege or duplicate_object or unique_violation then null;   -- another database of this server may be making it too
  end;
  begin
    if not (select r.rolsuper from pg_roles r where r.rolname = current_user) then execute format('grant fencepost_owner to %I', current_user); end if;
  exception when insufficient_privilege or undefined_object then null;                       -- may be a member all the same
  end;
  begin
    perform set_config('role', 'fencepost_owner', true);
    perform set_config('role', v_before, true);
    v_owner := 'fencepost_owner';
  exception when insufficient_privilege or undefined_object or invalid_parameter_value then null;
  end;
  execute format('create schema fencepost authorization %I', v_owner);
end $$;
