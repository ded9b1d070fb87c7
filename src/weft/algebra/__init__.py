"""Immutable values: windows, expressions, conditions, aggregates, queries and shared plans.

- expressions: `types`, `scalar`; conditions on one relation: `condition/`, and on several: `predicates/`;
- aggregates: `aggregate`, and `partial`, what a fragment carries for them;
- queries and plans: `window`, `query`, `signature`, `plan`; `nodes/` what stands between queries and the nodes
  of a plan; `numbered` a stream as row windows see it; `network/` join queries and their network;
  `joinagg/` aggregation joins and the sets that they join;
- how values are kept: `codec` writes them as JSON, `stored` has the names under which they are stored,
  `frozen` a mapping that nobody can change, and hashes that are computed once.

What two packages above need lives here; what is chosen by cost does not. Nothing here knows Spark,
files or a parser. Plan snapshots live in the checkpoint, so every value has a JSON form; importing
this package registers the names.
"""

from weft.algebra import stored

__all__ = ["stored"]
