-- Events of recipients that are gone, newest first.
select id, channel, at, state, gone_at, guarded, why, recipient, told_on_word_of
  from fencepost.unregistered_page(%(channel)s, %(withheld)s, %(recipient)s, %(limit)s)
