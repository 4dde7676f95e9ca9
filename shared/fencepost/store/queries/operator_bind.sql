-- Bind the database to an installation. Answer: bound, already or rebound; another name without force is refused.
select fencepost.bind(%(name)s, %(force)s)
