select journal, runs, events, commands, strays from fencepost.prunable()
