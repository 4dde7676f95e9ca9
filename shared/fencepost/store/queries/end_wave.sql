select fencepost.end_wave(%(run)s::uuid, %(unsent)s::uuid[])
