-- Two instants of the database from instants, or from "so many seconds ago".
select since, until from fencepost.time_range(%(since)s::timestamptz, %(since_seconds)s, %(until)s::timestamptz, %(until_seconds)s)
