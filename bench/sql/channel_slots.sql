-- How many sends a run may have in flight.
update fencepost.channel set slots = %(slots)s where name = 'push'
