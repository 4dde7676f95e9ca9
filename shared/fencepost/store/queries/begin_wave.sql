select fencepost.begin_wave(%(run)s::uuid, %(ids)s::uuid[], %(seconds)s::float8, %(part)s::uuid)
