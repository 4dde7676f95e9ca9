-- A page of delivered notifications, by id.
select ids, after_id, more from fencepost.delivered_page(%(channel)s, %(since)s, %(until)s, %(after_id)s, null, %(limit)s)
