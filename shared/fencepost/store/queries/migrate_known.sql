-- Whether a ledger of migrations is there: one row, null when not.
select to_regclass('fencepost.migration')::text
