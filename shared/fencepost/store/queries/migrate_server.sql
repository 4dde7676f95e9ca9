-- What decides whether Fencepost can live here. One row.
select current_setting('server_version_num')::int, current_setting('server_version'), current_setting('default_transaction_isolation'),
       pg_is_in_recovery(), current_setting('server_encoding'), current_database()::text
