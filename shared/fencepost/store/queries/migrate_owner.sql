-- For this transaction only: act as the schema's owner, so that everything in it has one owner whoever migrates.
select set_config('role', r.rolname, true) from pg_namespace n join pg_roles r on r.oid = n.nspowner where n.nspname = 'fencepost' and r.rolname <> current_user
