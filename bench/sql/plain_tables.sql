-- The base of every ratio: the plainest queue that still records outcomes and fences its finishes. No policies, no evidence, no runs.
create schema plain;
create table plain.notifications (
  id bigint generated always as identity primary key, tenant_id int not null, dedupe_key text not null,
  ordering_key text, payload jsonb not null, created_at timestamptz not null default now(),
  unique (tenant_id, dedupe_key));
create table plain.queue (
  notification_id bigint primary key, priority smallint not null, next_attempt_at timestamptz not null,
  lease_until timestamptz not null default '-infinity', fence bigint not null default 0,
  attempts smallint not null default 0, interrupted boolean not null default false)
  with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
create index delivery_due on plain.queue (priority, next_attempt_at, notification_id);
create table plain.attempts (
  notification_id bigint not null, fence bigint not null, outcome smallint not null, detail text,
  at timestamptz not null default now(), primary key (notification_id, fence));
