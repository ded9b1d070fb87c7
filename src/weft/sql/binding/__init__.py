"""From a query's text to what weft runs: `bind` is the entry.

It reads the text (`sql.reading`), and has it bound as a windowed aggregate (`sql.windowed`) or as a filter
or join, or a union of them (`sql.sets`). `templates` binds queries that differ in constants from one that is bound. `alone` and `safety` are for queries that run by themselves.
"""
