select notifications, attempts, evidence, operations, kept_for_key, after_id, more
  from fencepost.prune_closed(%(older_than)s::float8, %(after_id)s::bigint, %(limit)s::int, %(dry)s::boolean)
