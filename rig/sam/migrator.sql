-- Who migrates (docs/deploy.md), once a server.
do $$ begin
  create role fencepost_migrator login createrole;
exception when duplicate_object then null;
end $$;
