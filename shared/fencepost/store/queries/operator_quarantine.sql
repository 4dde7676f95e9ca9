-- A takeover of everything open: the fence raised, an uncertain attempt, doubt. Answer: how many.
select fencepost.quarantine(%(who)s, %(why)s)
