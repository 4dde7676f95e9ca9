select fencepost.has_work(%(channels)s::text[])
