"""Aggregation joins over aggregation sets: entries in, result rows at instants out.

`entries` holds the aggregates of one input by key, with the instants at which they count, and gives the `contents` of the input
at instants. `join` is the AS join of these contents by their `entry_keys`, `grouping` aggregates what it gives by `group_keys`, `scaling` is the
coalescing rule, `evaluation` puts them together for one query, `changes` compares instants. `panes` is what sources hold before a window
says when it counts, `instants` which instants a step must evaluate, `showing` makes result rows of groups.
"""
