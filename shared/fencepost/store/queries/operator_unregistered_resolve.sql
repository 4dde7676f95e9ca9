-- An operator's word on what is withheld in a channel.
select fencepost.unregistered_resolve(%(channel)s, %(true)s, %(who)s)
