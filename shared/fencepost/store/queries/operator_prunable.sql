select journal, runs, strays from fencepost.prunable()
