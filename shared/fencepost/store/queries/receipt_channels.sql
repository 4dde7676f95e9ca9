select id, name, sender, settings::text, secret_reference, slots, rate, on_uncertain, policy::text, revision, paused_for, pause_reason, skipped
  from fencepost.receipt_channels(%(ids)s::smallint[])
