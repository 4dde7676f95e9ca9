select journal, runs, more from fencepost.prune(%(limit)s::int)
