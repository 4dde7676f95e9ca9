-- How each of these notifications stands, in the order of the ids: open, due, leased, a kind of closed, or unknown. By primary key.
select w.id, coalesce(s.kind, s.state, 'unknown') as became
  from unnest(%(ids)s::bigint[]) with ordinality as w(id, ord) left join lateral fencepost.status(w.id) s on true order by w.ord
