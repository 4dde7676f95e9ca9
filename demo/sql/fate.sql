-- What became of what the run of one tick held: what others took over, and its own words that were refused (L late, C conflict).
select (select count(*) from fencepost.attempt a join fencepost.run r on r.id = a.run_id
         where r.invocation = %(invocation)s and a.taken_over) as taken_over,
       count(w.id) as late_words,
       min(w.id) as example
  from fencepost.run r
  join fencepost.journal j on j.run_id = r.id
  cross join lateral unnest(j.settled) with ordinality as w(id, ord)
 where r.invocation = %(invocation)s and substr(j.verdicts, w.ord::int, 1) in ('L', 'C');
