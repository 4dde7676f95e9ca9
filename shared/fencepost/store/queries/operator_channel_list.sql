-- All channels, by name.
select name, sender, settings, secret_reference, slots, rate, burst, on_uncertain, policy, payload_bytes_max, revision, paused, paused_for_seconds, pause_reason
  from fencepost.channel_list()
