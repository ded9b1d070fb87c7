"""Columns as arrays: keys as codes (`keys`, `codes`, `arrow`, in the orders of `sorting`), partials
(`partial_columns`, `sketches/`), and how they are combined (`operations`, `combine`, `ranges`;
on two threads by `side_by_side`). Rows of joins are made of `column`s; `scalar` evaluates
expressions over any columns.

Nothing here knows nodes, windows or time: a column is rows by position.
"""
