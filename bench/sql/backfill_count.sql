-- Everything there is, and what of it is open.
select (select count(*) from fencepost.notification), (select count(*) from fencepost.queue)
