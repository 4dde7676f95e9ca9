select fencepost.prune_strays(%(limit)s::int)
