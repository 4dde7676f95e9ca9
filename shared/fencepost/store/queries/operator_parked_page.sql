-- A page of parked notifications, oldest first, by the partial index of closed.
select id, closed_at from fencepost.parked_page(%(kind)s::fencepost.kind, %(channel)s, %(reason)s, %(since)s, %(until)s, %(after_at)s, %(after_id)s, %(limit)s)
