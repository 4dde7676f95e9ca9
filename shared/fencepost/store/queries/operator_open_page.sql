-- A page of open notifications, by id.
select id from fencepost.open_page(%(channel)s, %(in_doubt)s, %(since)s, %(until)s, %(after_id)s, %(limit)s)
