-- Lists of numbers and bytes go in binary: psycopg writes bytea[] as text fifty times slower, element by element.
-- The payload comes as text: read row by row, one that cannot be read breaks no other (words.py).
select verdicts, lost, gates,
       id, fence, channel, attempts, interruptions, doubt, age, first_age, doubt_age, first_digest, evidence, expires_in, lease_left, recipient, payload::text, idempotency_key, on_uncertain,
       resend_ordered
  from fencepost.exchange(
    %(run)s::uuid, %(seq)s::int, %(lease)s::float8, %(last)s::boolean,
    %(s_ids)b::bigint[], %(s_fences)b::bigint[], %(s_outcomes)s::fencepost.outcome[], %(s_kinds)s::fencepost.kind[], %(s_delays)s::float8[], %(s_reasons)s::text[],
    %(s_phases)s::fencepost.phase[], %(s_statuses)b::smallint[], %(s_references)s::text[], %(s_digests)b::bytea[], %(s_took)b::int[], %(s_details)s::text[],
    %(r_ids)b::bigint[], %(r_fences)b::bigint[],
    %(g_channels)s::smallint[], %(g_revisions)s::int[], %(g_pauses)s::float8[], %(g_reasons)s::text[],
    %(c_channels)s::smallint[], %(c_limits)s::int[], %(c_hinted)s::boolean[])
