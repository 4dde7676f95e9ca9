-- Two instants of the database from "so many seconds ago".
select since, until from fencepost.time_range(%(since_seconds)s, %(until_seconds)s)
