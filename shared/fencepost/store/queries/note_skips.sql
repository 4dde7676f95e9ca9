select fencepost.note_skips(%(run)s::uuid, %(channels)s::smallint[], %(revisions)s::int[], %(reasons)s::text[])
