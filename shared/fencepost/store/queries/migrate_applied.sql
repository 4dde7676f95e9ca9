-- What was applied here: file and hash.
select file, sha256 from fencepost.migration
