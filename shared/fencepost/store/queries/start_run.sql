select id, name, sender, settings::text, secret_reference, slots, rate, on_uncertain, policy::text, revision, paused_for, pause_reason, skipped,
       current_setting('synchronous_commit') as synchronous_commit
  from fencepost.start_run(%(run)s::uuid, %(installation)s::text, %(version)s::int, %(invocation)s::text, %(deadline_in)s::float8, %(channels)s::text[])
