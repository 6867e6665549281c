"""Learning on Apache Spark.

`session` connects. `source` reads the rows of a log by the rules of docs/scale.md, `blocks` makes
blocks of users of them, and `spark_log` is all of it as a build sees it. `als` learns from the
blocks; `solving` is what its executors compute.
"""
