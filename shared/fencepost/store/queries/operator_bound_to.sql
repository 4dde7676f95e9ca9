-- The installation this database is bound to, or null. Reads one row.
select fencepost.bound_to()
