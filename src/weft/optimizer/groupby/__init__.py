"""Group-by sharing, the Memory paper (Naidu et al., Memory-Constrained Aggregate Computation over
Data Streams): which group-by sets are computed from which.

`trees/` are the aggregate trees and the search for them, `memory/` is what a tree costs when its
tables are bounded and how memory is shared out; `planner` is both together. Here a node is a set of
attributes: which nodes a shared plan has is decided in `optimizer.node_tree`.
"""
