-- In the caller's transaction, through the caller's driver: positional parameters and text arrays only, because every driver has those.
select row_number, id, created, differs, error
  from fencepost.enqueue_many(
    cast(%s as text[]), cast(%s as text[]), cast(%s as text[]), cast(cast(%s as text[]) as timestamptz[]), cast(cast(%s as text[]) as interval[]),
    cast(cast(%s as text[]) as timestamptz[]), cast(cast(%s as text[]) as interval[]), cast(cast(%s as text[]) as int[]), cast(%s as text[]),
    cast(%s as text[]), cast(cast(%s as text[]) as bigint[]), %s)
 order by row_number
