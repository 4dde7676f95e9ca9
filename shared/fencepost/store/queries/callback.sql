-- What providers told by themselves. Answer: one letter each (085_callbacks.sql).
select fencepost.callback(%(ids)s::bigint[], %(fences)s::bigint[], %(keys)s::uuid[], %(outcomes)s::fencepost.outcome[], %(references)s::text[], %(details)s::text[],
                          %(gone)s::boolean[], %(gone_ats)s::float8[], %(guarded)s::boolean[])
