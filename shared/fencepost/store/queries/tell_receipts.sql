select fencepost.tell_receipts(%(ids)s::bigint[], %(fences)s::bigint[], %(references)s::text[], %(outcomes)s::fencepost.outcome[], %(reasons)s::text[], %(details)s::text[],
                               %(gone)s::boolean[], %(gone_ats)s::float8[], %(guarded)s::boolean[], %(pauses)s::float8[])
