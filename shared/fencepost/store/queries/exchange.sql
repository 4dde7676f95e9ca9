-- Lists of numbers and bytes are written by arrays.py, in binary.
-- The payload comes as text: read row by row, one that cannot be read breaks no other (words.py).
select verdicts, lost, gates,
       id, fence, channel, recipient, payload::text, idempotency_key, attempts, interruptions, doubt, age, first_age, first_digest, evidence, expires_in, lease_left, on_uncertain, doubt_age,
       resend_ordered  -- from id on as Claimed has them
  from fencepost.exchange(
    %(run)s::uuid, %(seq)s::int, %(lease)s::float8, %(last)s::boolean,
    %(s_ids)s::bigint[], %(s_fences)s::bigint[], %(s_outcomes)s::fencepost.outcome[], %(s_kinds)s::fencepost.kind[], %(s_delays)s::float8[], %(s_reasons)s::text[],
    %(s_phases)s::fencepost.phase[], %(s_statuses)s::smallint[], %(s_references)s::text[], %(s_digests)s::bytea[], %(s_took)s::int[], %(s_details)s::text[],
    %(r_ids)s::bigint[], %(r_fences)s::bigint[],
    %(g_channels)s::smallint[], %(g_revisions)s::int[], %(g_pauses)s::float8[], %(g_reasons)s::text[],
    %(c_channels)s::smallint[], %(c_limits)s::int[], %(c_hinted)s::boolean[])
