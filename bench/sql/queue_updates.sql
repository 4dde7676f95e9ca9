-- Updates of a schema's queue table, and how many were HOT. Complete once the backends that made them have ended.
select n_tup_upd, n_tup_hot_upd from pg_stat_user_tables where schemaname = %(schema)s and relname = 'queue'
