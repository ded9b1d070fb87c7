"""Group-by sharing: from the group-by sets of many queries to nodes.

`flat` gives every group-by set a first-level node. The rest is the Memory paper (Naidu et al.,
Memory-Constrained Aggregate Computation over Data Streams): `aggregate_tree` the plans, `tree_cost`
and `eviction` what they cost, `greedy_tree` the search, `fptas`, `uniform_allocation` and `slc` the
memory of its nodes, `estimate` the statistics that were not given, `planner` all of it together.
"""
