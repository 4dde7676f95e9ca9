-- What is missing of the boundary between the roles here: a sentence a row; none where it is whole. Reads the catalogue only.
create function fencepost.boundary_missing() returns setof text language sql stable security definer set search_path = pg_catalog, pg_temp as $f$
  select format('role %s is missing: this database user may not create roles, so whoever does its work connects as the owner of the schema', w.role)
    from unnest('{fencepost_producer,fencepost_worker,fencepost_operator,fencepost_reader}'::text[]) as w(role)
   where not exists (select from pg_roles r where r.rolname = w.role)
  union all
  select format('role %s has no %s in this database (made by another user, or the database is a copy): whoever made the role must migrate here, or set it',
                w.role, string_agg(w.setting, ', ' order by w.ord))
    from pg_roles r, lateral (values (r.oid, r.rolname, 1, 'statement_timeout'), (r.oid, r.rolname, 2, 'lock_timeout'),
                                     (r.oid, r.rolname, 3, 'idle_in_transaction_session_timeout')) as w(id, role, ord, setting)
   where r.rolname in ('fencepost_worker', 'fencepost_operator', 'fencepost_reader')
     and not exists (select from pg_db_role_setting s, unnest(s.setconfig) as c(said)
                      where s.setrole = w.id and s.setdatabase in (0, (select d.oid from pg_database d where d.datname = current_database()))
                        and split_part(c.said, '=', 1) = w.setting)
   group by w.role
  union all
  select format('the schema belongs to %s, who can log in: whoever has that password can write every table past its functions', o.rolname)
    from pg_namespace n join pg_roles o on o.oid = n.nspowner where n.nspname = 'fencepost' and o.rolcanlogin $f$;
