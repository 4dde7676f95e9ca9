-- How far the newest command is, and how many messages it took.
select coalesce(ending, 'going'), continuation + 1, counts::text from fencepost.command order by begun_at desc limit 1
