-- Pause a channel for so many seconds (null: until it is resumed). Answer: its new revision.
select fencepost.channel_pause(%(name)s, %(reason)s, %(seconds)s)
