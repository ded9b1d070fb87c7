"""Lookups of a relation's rows in tables (`weft.algebra.network.lookup`).

`compiled` is a lookup as the kernel runs it, `tables` finds the matches of rows in a table that is sorted by
key, `looked_up` gives rows with the columns of their matches. A table never changes here: another version of
it is another state.
"""
