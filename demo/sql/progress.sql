-- Cheap enough to ask twice a second. Reads only.
select (select count(*) from fencepost.queue) as open,
       (select count(*) from fencepost.queue q where q.lease_until > fencepost.now_()) as leased,
       (select count(*) from fencepost.queue q where q.doubt) as in_doubt,
       (select count(*) from fencepost.closed c where c.kind = 'delivered') as delivered,
       (select count(*) from fencepost.closed c where c.kind in ('dead', 'uncertain')) as parked,
       (select count(*) from fencepost.attempt a where a.taken_over) as taken_over,
       (select coalesce(sum(length(translate(j.verdicts, 'ARU', ''))), 0) from fencepost.journal j) as late_words;
