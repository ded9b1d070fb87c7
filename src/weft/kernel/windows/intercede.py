"""Level 2 (intercede aggregation of the TriOps paper, sections III-B and IV-B): from the shards that
a node wrote in a step to the fragments of a pool, once for each predicate, as fine as its groups
need them."""

from __future__ import annotations

from weft.kernel.columns.keys import KeyEncoder
from weft.kernel.fragments.coalesce import coalesced, interceded
from weft.kernel.fragments.members import expanded
from weft.kernel.fragments.state import NodeState, Shards
from weft.kernel.windows.program import Pool


def pool_fragments(shards: Shards, pool: Pool, encoder: KeyEncoder) -> NodeState:
    """The fragments that a pool gets of shards; `encoder` knows the codes of their keys."""
    rows = expanded(shards, pool.indexes, encoder, pool.partials)
    if pool.fragments is not None:
        return interceded(rows, pool.fragments)
    return coalesced(rows) if shards.signature else rows
