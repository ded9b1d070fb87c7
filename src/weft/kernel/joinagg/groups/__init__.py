"""From joined entries to aggregates of groups.

`grouping` puts joined entries into groups, block by block, `scaling` is the coalescing rule for entries that stand for many rows, `computed` has
the aggregates over several inputs, `distinct` the values that are counted once, `products` groups two aggregation sets without joining them, `partial_groups` are the groups that all of these give, and `lowering` makes results of groups, or tables that others go on with. What is joined is decided in `weft.kernel.joinagg.join`.
"""
