-- Some table is read, so that the transaction keeps a snapshot.
select count(*) from fencepost.installation
