"""Pure functions from queries to shared plans.

`gtweave` is the pipeline: `draft` is what it begins with, `weaving` chooses the groups of windows and
`node_tree` the aggregate tree, `invariants` checks every plan. `cost` is what a plan costs.
The parts know nothing of each other: `windows/` which queries read the same fragments, `predicates/`
how conditions become signatures, `groupby/` aggregate trees and their memory, `network/` how join queries
share one network, `joinagg/` which inputs of a join are aggregated before it, `placement/` which lane runs what, and below them `edges/`
where fragments end. Nothing here knows Spark, files, or how a plan is shown or run.
"""
