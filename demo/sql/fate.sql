-- What became of what the run of one tick held: taken over by others, and its own words that came too late.
select (select count(*) from fencepost.attempt a join fencepost.run r on r.id = a.run_id
         where r.invocation = %(invocation)s and a.taken_over) as taken_over,
       (select coalesce(sum(length(translate(j.verdicts, 'ARU', ''))), 0) from fencepost.journal j join fencepost.run r on r.id = j.run_id
         where r.invocation = %(invocation)s) as late_words,   -- L late, C conflict
       (select min(e.notification_id) from fencepost.evidence e join fencepost.run r on r.id = e.run_id
         where r.invocation = %(invocation)s and e.source = 'late') as example;
