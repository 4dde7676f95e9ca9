-- In the transaction of the file itself: applied is what was committed.
insert into fencepost.migration (file, sha256, code_version) values (%(file)s, %(sha256)s, %(code_version)s)
