select due, more, oldest_due_seconds from fencepost.backlog(%(channels)s::text[], %(limit)s::int, %(seconds)s::float8)
