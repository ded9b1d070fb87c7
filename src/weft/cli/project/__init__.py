"""A project folder: weft.yaml, queries, what was recorded, and the weft that runs it."""
