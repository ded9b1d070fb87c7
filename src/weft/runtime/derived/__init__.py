"""Windowed aggregates over joins of streams: an engine (`engine`) that follows the rows which the network
publishes of a join (`publication`), and computes windows over them. `leftovers` are those of earlier runs. What a derived stream is, and why its
rows are never late, is in `weft.algebra.network.derived`; the windows themselves are those of
`runtime.level1` and the kernel.
"""
