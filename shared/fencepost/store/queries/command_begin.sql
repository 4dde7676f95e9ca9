-- Take a command up: whoever begins raises the fence. Answer: a verdict, and how far it got.
select verdict, fence, place, counts, reason
  from fencepost.begin_command(%(id)s, %(what)s, %(digest)s, %(continuation)s, %(since)s::timestamptz, %(since_seconds)s, %(until)s::timestamptz, %(until_seconds)s)
