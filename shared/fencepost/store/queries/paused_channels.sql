select fencepost.paused_channels(%(channels)s::text[])
