-- Close these if they are open: queue rows by id, the fence raised. Answer: what became of each.
select id, verdict as became from fencepost.cancel(%(ids)s::bigint[], %(who)s, %(why)s)
