"""What names mean: streams and tables, relations in FROM, their columns, the names of results.

`inputs` holds the streams and tables, `scope` the relations of one FROM and their columns, `rows` binds
expressions over them, `sources` reads FROM with its subqueries, `unions` takes set operations apart, `block`
holds what must be true of which inputs, `subqueries` binds IN and EXISTS, `projection` binds a select list
without aggregates, `names` gives result columns the names that Spark gives them.
"""
