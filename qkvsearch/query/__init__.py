"""The language of queries, and the conditions of `--where`."""
