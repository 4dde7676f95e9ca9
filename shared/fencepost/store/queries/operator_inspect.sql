-- All that is known of one notification as one JSON value; null where there is none.
select fencepost.inspect(%(id)s, %(recipient)s, %(payload)s)
