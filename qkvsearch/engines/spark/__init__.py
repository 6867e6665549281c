"""Learning and batches on Apache Spark.

`session` connects; `source` → `cells` → `rows` read a log by the rules of `data`, and `histories`
makes blocks of compressed rows of it; `learning` alternates over these with the solver of
`collaborative`; `log` is all that as a build sees it. What runs in an executor works on Arrow
`tables` and NumPy alone.
"""
