-- Bytes of WAL written so far.
select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint
