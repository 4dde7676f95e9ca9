-- Finish rows for good, fenced; ids sorted by the client. Ids missing in the answer were stale.
with f as materialized (select * from unnest(%(ids)s::bigint[], %(fences)s::bigint[], %(outs)s::smallint[]) as f(id, fence, outcome)),
d as (delete from plain.queue q using f
       where q.notification_id = any(%(ids)s::bigint[]) and q.notification_id = f.id and q.fence = f.fence
      returning q.notification_id, q.fence, f.outcome)
insert into plain.attempts (notification_id, fence, outcome) select * from d returning notification_id
