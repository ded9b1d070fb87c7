"""`weft bench aggjoin`: plans of aggregation joins, early against late, and many of them at once.

`points` are the paper's sweeps, scaled, with what a plan costs there and what the kernel needs for it; `fitting` finds the constants of these costs; `whole` runs stored streams to their end, in weft and on plain Spark; `publishing` finds from such runs what publishing panes and rows costs. `uniting` times queries as one
join and one by one, `matching` runs whose late inputs the query network joins. `benchmark` has the parts, each with its
comparisons.
"""
