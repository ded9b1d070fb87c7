"""Open fragments of a node: `state` holds them sorted by key and time, `slots`
many of them apart by time, `members` finds which
predicates a shard satisfies, `derive` computes a node from its parent's fragments (with `buckets`
and `classify`), `coalesce` makes coarser fragments of them. Windows are not known here.
"""
