-- Open a paused channel for the next claim.
select revision, was_paused_for from fencepost.channel_resume(%(name)s)
