"""Aggregation joins as values: window joins followed by a grouped aggregation (AggJoin).

`windows` says which instants an input's row counts at, `query` is a bound query, `plan` what is early of all of them.
`sources` is what inputs are made of, `serving` which sources serve others; `sets` are the aggregation sets of early ones, `row_lifts` the rows of late ones,
`matches` the join of late ones in the query network.
How a plan is chosen is `weft.optimizer.joinagg`, how it computes is `weft.kernel.joinagg`.
"""
