"""Aggregation joins over aggregation sets: entries in, result rows at instants out.

`entries` holds the aggregates of one input by key, with the instants at which they count, and gives the `contents/` of the input
at instants; `updating` keeps it from step to step. `join` is the AS join of these contents, `groups/` aggregates what it gives, `together` puts them together for
queries that join as one, `evaluation` for one query; `split` shares a join out to buckets, `matched` is about inputs whose rows were joined before; `changes` compares instants. `panes` is
what sources hold before a window says when it counts, `served_panes` what a published set holds for each source that it serves, `instants` which instants a step must evaluate, `showing` makes result rows of groups.
"""
