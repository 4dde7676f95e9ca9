-- What a run knew and could not say. Answer: one letter a fact.
select fencepost.run_evidence(%(run)s, %(ids)s::bigint[], %(fences)s::bigint[], %(outcomes)s::fencepost.outcome[], %(references)s::text[], %(details)s::text[], %(gone)s::boolean[])
