-- Callbacks: what a provider tells by itself, of one attempt (an event of SES, a status of Twilio). Evidence like any other, after one
-- question: is it of a notification that is here? Who tells must know its idempotency key: ids of two installations are alike. Of what is not here
-- nothing is written, so that strangers fill no table and learn nothing.

-- Answers one letter each: U not here, else as evidence() does. Gone: the recipient is, whatever became of the message; an event for producers.
create function fencepost.callback(p_ids bigint[], p_fences bigint[], p_keys uuid[], p_outcomes fencepost.outcome[], p_references text[], p_details text[],
  p_gone boolean[], p_gone_ats float8[], p_guarded boolean[]) returns text language plpgsql security definer
set search_path = pg_catalog, pg_temp set jit = off set plan_cache_mode = force_generic_plan
set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off set enable_hashjoin = off set enable_mergejoin = off as $f$
declare v_ours bigint[]; v_gone int[]; v_letters text;
begin
  select array_agg((select n.id from fencepost.notification n
                     where n.id = w.id and n.idempotency_key = w.key limit 1) order by w.ord)
    into v_ours from unnest(p_ids, p_keys) with ordinality as w(id, key, ord);
  if array_remove(v_ours, null) = '{}' then return repeat('U', cardinality(v_ours)); end if;
  v_letters := fencepost.evidence('callback', v_ours, p_fences, p_outcomes, p_references, p_details);
  select array_agg(w.ord::int) into v_gone from unnest(v_ours, p_gone) with ordinality as w(id, gone, ord) where w.gone and w.id is not null;
  if v_gone is not null then
    perform fencepost.note_unregistered_(array_agg(v_ours[o]), array_agg(p_fences[o]), array_agg(to_timestamp(p_gone_ats[o])), array_agg(p_guarded[o]), array_agg(p_details[o]))
       from unnest(v_gone) as o;
  end if;
  return (select string_agg(case when w.id is null then 'U' else substr(v_letters, w.ord::int, 1) end, '' order by w.ord) from unnest(v_ours) with ordinality as w(id, ord));
end $f$;

-- The channels a provider calls back by itself, and whose secret signs those calls.
create function fencepost.callback_channels() returns table (name text, settings jsonb, secret_reference text)
language sql stable security definer set search_path = pg_catalog, pg_temp as $f$
  select c.name, c.settings, c.secret_reference from fencepost.channel c where c.sender = 'twilio' $f$;
