-- How many exchanges all runs held: seq counts them.
select coalesce(sum(seq), 0)::int from fencepost.run
