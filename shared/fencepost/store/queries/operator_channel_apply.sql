-- Create or change channels by name, all or none. Answer: one row a channel.
select name, change, revision, paused, pause_reason from fencepost.channel_apply(%(channels)s::jsonb, %(dry)s)
