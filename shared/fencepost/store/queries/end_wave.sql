select fencepost.end_wave(%(run)s::uuid)
