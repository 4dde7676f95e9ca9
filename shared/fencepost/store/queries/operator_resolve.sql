-- An operator's word on what became of these: evidence, at no particular fence. Answer: how each stands now.
select id, verdict as became from fencepost.resolve(%(ids)s::bigint[], %(outcome)s, %(who)s, %(why)s)
