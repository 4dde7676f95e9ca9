-- A page of redrive or resolve under the fence: by ids, or the next ones by selector.
select verdict, counts, place
  from fencepost.command_move(%(id)s, %(fence)s, %(word)s, %(ids)s::bigint[], %(last)s, %(kinds)s::text[], %(channel)s, %(reason)s, %(who)s, %(why)s, %(limit)s)
