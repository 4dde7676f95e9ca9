-- The next command begins with a table of commands of its own.
delete from fencepost.command
