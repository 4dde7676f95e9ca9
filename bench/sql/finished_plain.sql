-- How many are finished.
select count(*) from plain.attempts
