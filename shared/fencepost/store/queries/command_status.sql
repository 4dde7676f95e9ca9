-- How a command stands, as one JSON value; null: there is none.
select fencepost.command_status(%(id)s)
