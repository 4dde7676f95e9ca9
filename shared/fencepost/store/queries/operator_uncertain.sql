-- What is in doubt, oldest first, between two ends: instants, or seconds ago (null: no end).
select u.id, u.channel, u.state, u.reason, u.policy, u.since, u.age_seconds, u.attempts, u.fence, u.outcome, u.phase, u.status, u.reference, u.detail
  from fencepost.time_range(%(since)s::timestamptz, %(since_seconds)s, %(until)s::timestamptz, %(until_seconds)s) as r,
    lateral fencepost.uncertain_page(%(channel)s, %(reason)s, r.since, r.until, %(limit)s) as u
