"""Edges of windows: how many a set of windows has per unit of time, and the fragments between them.

`edges` counts exactly where that is quick (`edge_bitset`, `edge_counting` with `coprime_base`), and
estimates with a bound where it is not (`edge_sampling`); `common_edges` counts what two sets share;
`slices` makes the fragments of windows. Which windows should share edges is decided in
`optimizer.windows`.
"""
