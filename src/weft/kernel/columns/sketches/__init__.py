"""Columns of mergeable sketches.

`sketch_kinds` says how sketches of a kind are read, merged and written, `sketch_column` is a column of any
of them, `sketch_sets` one of few sketches of distinct values. Which aggregates need a sketch is decided in
`algebra.aggregate`.
"""
