select id, fence, channel, reference from fencepost.take_receipts(%(channels)s::text[], %(limit)s::int)
