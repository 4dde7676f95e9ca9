-- Rows first to last through the product's own function, one in ten of a higher priority, 300 bytes of payload.
select count(m.id) from (
  select array_agg('https://localhost:' || %(port)s::int || %(path)s::text order by i) as recipients, array_agg('order-' || i order by i) as dedupe_keys,
         array_agg(format('{"title": "Order %%s has left", "body": "%%s"}', i, repeat('x', 250)) order by i) as payloads,
         array_agg(case when i %% 10 = 0 then 0 else 1 end order by i) as priorities
    from generate_series(%(first)s::int, %(last)s::int) as i) r,
  lateral fencepost.enqueue_many(array['push'], r.recipients, r.payloads, dedupe_keys => r.dedupe_keys, priorities => r.priorities) m
