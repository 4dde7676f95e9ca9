-- One migrator at a time in this database; given back with the transaction, so that no pooled session can keep it.
select pg_advisory_xact_lock(hashtextextended('fencepost.migrate', 0))
