"""Aggregation joins: windows over inputs, their join, and a grouped aggregation of it. `query` is the entry.

`windows` checks the windows of inputs and says when the query is evaluated, `conditions` takes WHERE and ON apart into
selections of single inputs and conditions between several, `attributes` collects what these and the groups read
of each input, `groups` binds keys and aggregates, with the instant as the time of a group.
"""
