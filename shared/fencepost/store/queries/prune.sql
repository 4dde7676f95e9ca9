select journal, runs, events, commands, more from fencepost.prune(%(limit)s::int)
