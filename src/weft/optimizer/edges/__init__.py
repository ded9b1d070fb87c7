"""Edges of windows: how many a set of windows has per unit of time, and the fragments between them.

`workload` is the windows of many queries, those of equal edges together. `edges` counts exactly where
that is quick (`edge_bitset`, `edge_counting` with `coprime_base`), and estimates with a bound where it is
not (`edge_sampling`); `common_edges` counts what two sets share; `edge_atoms` splits time so that the
edges of any union are a sum, with `cover_pool` (sample times) where there would be too many parts;
`slices` makes the fragments of windows. Which windows should share edges is decided in
`optimizer.windows`, and where they run in `optimizer.placement`.
"""
