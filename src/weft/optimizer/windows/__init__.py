"""Window sharing: which queries share fragments, and what that costs.

- what is known: `workload` (queries by equal edges) and `cost` (the models), with the constants of
  `calibration`;
- the optimizers, each `(workload, rate, model) -> Grouping` (`grouping`): `noshare`, `shared`, `weaveshare`,
  `insert_then_weave`, `triweave`, `best`, by name in `optimizers`; `spans` is weft's own cost of
  groups, and the best groups under it;
- what they search with is in `search/`.

Counting edges is in `optimizer.edges`; how groups run is the kernel's and the runtime's business.
"""
