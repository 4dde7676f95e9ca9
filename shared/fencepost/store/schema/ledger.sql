-- Not numbered: `migrate` runs it second, as the schema's owner. What was applied here, of which content, by which code.
create table if not exists fencepost.migration (
  file text primary key,
  sha256 text not null,
  applied_at timestamptz not null default now(),
  code_version int not null);
