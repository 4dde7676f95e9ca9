-- What is missing of the boundary between the roles here: a sentence a row; none where it is whole. Reads the catalogue only.
create function fencepost.boundary_missing() returns setof text language sql stable security definer set search_path = pg_catalog, pg_temp as $f$
  select format('role %s is missing: this database user may not create roles, so whoever does its work connects as the owner of the schema', w.role)
    from unnest('{fencepost_producer,fencepost_worker,fencepost_operator,fencepost_reader}'::text[]) as w(role)
   where not exists (select from pg_roles r where r.rolname = w.role)
  union all
  select format('the schema belongs to %s, who can log in: whoever has that password can write every table past its functions', o.rolname)
    from pg_namespace n join pg_roles o on o.oid = n.nspowner where n.nspname = 'fencepost' and o.rolcanlogin $f$;
