-- Rows first to last, one in ten of a higher priority, 300 bytes of payload.
with n as (
  insert into plain.notifications (tenant_id, dedupe_key, payload)
  select 1, 'order-' || i, (format('{"title": "Order %%s has left", "body": "%%s"}', i, repeat('x', 250)))::jsonb
    from generate_series(%(first)s::int, %(last)s::int) as i
  returning id)
insert into plain.queue (notification_id, priority, next_attempt_at)
select n.id, case when n.id %% 10 = 0 then 0 else 1 end, now() from n
