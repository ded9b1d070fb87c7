"""Placement: which node (lane) runs which trees (weave groups), after the Placement paper and beyond it.

- what is placed on what: `demand` (items, rate, nodes and their weights);
- what comes out: `placement` (trees on nodes, with total and max cost);
- the optimizers, each `(demand, seed) -> Placement`: the paper's 13 in `papers/`, weft's own `balanced`, by name in
  `optimizers`; `replacing` changes a placement with few moves; `hierarchy` plans many streams and lanes,
  by stream, slide class and lane;
- what the runtime asks: `units` places units of work of known cost on lanes;
- what they count with: `growing_trees` and the loops of `compiled`.

Which windows have edges in common is counted in `optimizer.edges`; running lanes is the runtime's business.
"""
