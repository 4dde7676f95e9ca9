-- A message with this number carries the command on: older ones have nothing left to do.
select fencepost.command_continued(%(id)s, %(fence)s, %(continuation)s)
