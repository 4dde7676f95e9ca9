-- One row a channel; figures stop at at_most rows a group (null: count everything).
select channel, sender, due, scheduled, leased, in_doubt, open_more, oldest_due_seconds, dead, uncertain, parked_more, paused, paused_for_seconds, pause_reason,
       skip_reason, skipped_at, skipped_for_seconds, withheld
  from fencepost.status_report(%(at_most)s)
