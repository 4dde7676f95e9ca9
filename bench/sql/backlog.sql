-- Rows due one after the other up to now (or, `ahead` given, from then on), of one priority or (null) one in ten of priority 0.
with n as (
  insert into fencepost.notification (channel, recipient, payload, dedupe_key, priority, due_at)
  select c.id, 'https://hooks.example.com/customers/' || i, jsonb_build_object('title', 'Order ' || i || ' has left', 'body', repeat('x', 250)),
         %(keys)s::text || i, coalesce(%(priority)s::int, case when i %% 10 = 0 then 0 else 1 end), now() + %(ahead)s::interval + (i - %(rows)s::int) * interval '1 ms'
    from fencepost.channel c, generate_series(1, %(rows)s::int) as i where c.name = 'push'
  returning id, channel, priority, due_at)
insert into fencepost.queue (notification_id, due_at, channel, priority) select n.id, n.due_at, n.channel, n.priority from n
