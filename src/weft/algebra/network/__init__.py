"""Join queries and their shared network, as values.

`query` is a bound select-join-project query, `lookup` what its rows get from tables, `sets` a union of
several queries, `derived` a stream of a join's rows for windowed aggregates, `plan` the network of nodes that computes many of them. `bits` are what only Spark can compute of a row, `bounds` says which
inputs keep their rows for ever. How a network is made is `weft.optimizer.network`, how it computes
is `weft.kernel.network`.
"""
