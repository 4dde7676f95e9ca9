-- A page of replay under the fence: by ids, or the next delivered ones of the range.
select verdict, counts, place from fencepost.command_replay(%(id)s, %(fence)s, %(ids)s::bigint[], %(last)s, %(channel)s, %(limit)s)
