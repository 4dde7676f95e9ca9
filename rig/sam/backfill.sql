-- Who does the commands and who hears callbacks (docs/deploy.md), once a server; the roles it is in came with the schema.
do $$ begin
  create role fencepost_backfill login in role fencepost_operator, fencepost_worker;
exception when duplicate_object then null;
end $$;
do $$ begin
  create role fencepost_callback login in role fencepost_worker;
exception when duplicate_object then null;
end $$;
