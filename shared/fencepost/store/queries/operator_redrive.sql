-- Open these again if they are parked: attempts 0, the fence raised. Uncertain ones only to resend.
select id, verdict as became from fencepost.redrive(%(ids)s::bigint[], %(resend)s, %(who)s, %(why)s)
