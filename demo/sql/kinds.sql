-- How each closed notification ended, by its subject (the dedupe key). Reads only.
select n.dedupe_key, c.kind::text, c.fence, c.reason from fencepost.closed c join fencepost.notification n on n.id = c.notification_id;
