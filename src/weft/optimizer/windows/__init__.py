"""Window sharing: which queries share fragments, and what that costs.

- what is known: `cost` (the models), with the constants of `calibration`;
- the optimizers, each `(workload, rate, model) -> Grouping` (`grouping`): `noshare`, `shared`, `weaveshare`,
  `insert_then_weave`, `triweave`, `best`, by name in `optimizers`; `spans` is weft's own cost of
  groups, and the best groups under it;
- what they search with is in `search/`.

Queries by equal edges, and counting edges, are in `optimizer.edges`; how groups run is the kernel's and the runtime's business.
"""
