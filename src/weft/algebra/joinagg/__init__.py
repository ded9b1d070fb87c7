"""Aggregation joins as values: window joins followed by a grouped aggregation (AggJoin).

`windows` says which instants an input's row counts at, `query` is a bound query, `sets` the aggregation sets of its
inputs. How a plan is chosen is `weft.optimizer.joinagg`, how it computes is `weft.kernel.joinagg`.
"""
