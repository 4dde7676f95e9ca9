-- The backends of the programs that call themselves so.
select pid from pg_stat_activity where application_name = %(name)s order by pid
