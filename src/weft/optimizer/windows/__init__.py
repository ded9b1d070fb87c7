"""Window sharing: which queries share fragments, and what that costs.

- what is known: `workload` (queries by equal edges), `edges` and below it `edge_bitset`,
  `edge_counting`, `edge_sampling`, `coprime_base` (exact edge rates, or estimates with a bound),
  `cost` (the models);
- the optimizers, each `(workload, rate, model) -> Grouping`: `noshare`, `shared`, `weaveshare`,
  `insert_then_weave`, `triweave`, `best`, by name in `optimizers`;
- what they search with: `merge_sequence`, `exact_partition`, `local_search`, `lower_bound`, and
  the quick rates of `search_rates`, `common_edges` and `cover_pool`;
- `slices`: the fragments of a group.

Plain Python and NumPy; how groups run is the kernel's and the runtime's business.
"""
