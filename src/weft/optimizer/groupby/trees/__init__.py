"""Aggregate trees: `aggregate_tree` is the tree, `greedy_tree` the paper's search for one,
`native_tree` the search by what Spark's own aggregation costs; `statistics` and `estimate` say how
many groups a set of attributes has. Bounded memory is in `groupby.memory`.
"""
