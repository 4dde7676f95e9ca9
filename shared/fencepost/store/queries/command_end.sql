-- The command has ended. False: another delivery has taken it up.
select fencepost.end_command(%(id)s, %(fence)s, %(ending)s, %(reason)s, %(counts)s)
