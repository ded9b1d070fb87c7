"""Pure functions from queries to shared plans.

`windows/` decides where fragments end, `predicates/` how conditions become signatures,
`groupby/` which first-level nodes there are; `share` composes them. No part knows Spark.
"""
