"""Columns as arrays: keys as codes (`keys`, `codes`, `arrow`), partials (`partial_columns`), and how
they are combined (`operations`, `combine`, `ranges`; `sketches/`). Rows of joins are
made of `column`s; `scalar` evaluates expressions over any columns.

Nothing here knows nodes, windows or time: a column is rows by position.
"""
