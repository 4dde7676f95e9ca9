-- A page of rows, and the place behind it, under the fence. Answer: a verdict, counts, and what the database found bad.
select verdict, counts, lines, faults
  from fencepost.command_enqueue(%(id)s, %(fence)s, %(place)s, %(last)s, %(atomic)s, %(bad_lines)s::bigint[], %(faults)s::text[], %(lines)s::bigint[],
    %(channel)s::text[], %(recipient)s::text[], %(payload)s::text[], %(due_at)s::text[]::timestamptz[], %(delay)s::text[]::interval[], %(expires_at)s::text[]::timestamptz[],
    %(ttl)s::text[]::interval[], %(priority)s::text[]::int[], %(dedupe_key)s::text[], %(on_uncertain)s::text[], %(replay_of)s::text[]::bigint[])
