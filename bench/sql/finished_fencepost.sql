-- How many are closed as delivered.
select count(*) from fencepost.closed where kind = 'delivered'
