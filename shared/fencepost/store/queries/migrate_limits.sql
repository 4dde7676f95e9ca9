-- For this transaction only: how long it may wait for a row lock or a table lock (text, milliseconds). A role's own statement timeout must not cut a migration.
select set_config('lock_timeout', %(lock_timeout)s, true), set_config('statement_timeout', '0', true), set_config('search_path', 'pg_catalog, pg_temp', true)
