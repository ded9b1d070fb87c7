"""Memory for the intermediates of an aggregate tree, and what a tree costs with little of it.

`eviction` and `recency` say how many entries a bounded table passes on, `tables` and `tree_cost` what
a table and a tree cost; `slc`, `uniform_allocation` and `fptas` (with `frontier`, `refine`,
`relaxation`) share memory out; `forest` and `ranking` are the values they work on. Running such
tables is an experiment (`experiments.memory`): Spark's own aggregation does not evict.
"""
