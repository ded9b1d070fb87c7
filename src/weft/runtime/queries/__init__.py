"""Registered queries and what they read.

`registry` has the queries bound, `live` those that the catalog has now, `sources` the streams and
tables. `analyzer` asks Spark for types, `session` says what the session's settings mean for SQL,
`streaming_rules` applies Spark's rules to queries that run alone. What users call is in `api/`;
what runs the queries is in `run/` and `fallbacks/`.
"""
