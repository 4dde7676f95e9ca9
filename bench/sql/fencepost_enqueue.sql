-- Rows from the first number on, through the product's own function: one in ten of a higher priority, 300 bytes of payload.
select count(m.id) from (
  select array_agg('order-' || i order by i) as dedupe_keys, array_agg(case when i %% 10 = 0 then 0 else 1 end order by i) as priorities,
         array_agg(format('{"title": "Order %%s has left", "body": "%%s"}', i, repeat('x', 250)) order by i) as payloads
    from generate_series(%(first)s::int, %(first)s::int + cardinality(%(recipients)s::text[]) - 1) as i) r,
  lateral fencepost.enqueue_many(array['push'], %(recipients)s::text[], r.payloads, dedupe_keys => r.dedupe_keys, priorities => r.priorities) m
