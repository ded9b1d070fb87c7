"""Join queries and their shared network, as values.

`query` is a bound select-join-project query, `plan` the network of nodes that computes many of them.
How a network is made is `weft.optimizer.network`, how it computes is `weft.kernel.network`.
"""
