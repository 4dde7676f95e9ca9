select journal, dedupe_keys from fencepost.retention(%(journal)s::float8, %(dedupe_keys)s::float8)
