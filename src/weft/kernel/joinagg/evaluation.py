"""The result of one aggregation join at instants.

For all instants of a step together: the contents of every input (merged by key if it is aggregated early), their join, groups,
lowered aggregates (`together`, for one query). A query without groups has a row at every instant, also where nothing is joined.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.partial import Partial
from weft.kernel.columns.operations import Array
from weft.kernel.failure import QueryFailure
from weft.kernel.joinagg.groups.lowering import AT
from weft.kernel.joinagg.join import BLOCK
from weft.kernel.joinagg.together import Member, Side, evaluated_together

__all__ = ["AT", "Side", "evaluated"]


def evaluated(
    query: AggregationJoin,
    sides: Sequence[Side],
    partials: Sequence[tuple[Partial, ...]],
    instants: Array,
    *,
    ansi: bool,
    block: int = BLOCK,
) -> pa.Table:
    """Groups at instants, before HAVING and projection: `at`, keys `k0…`, aggregates `a0…`. `partials` are those of
    each aggregate, in the order in which it is lowered."""
    member = Member(query, partials)
    (result,) = evaluated_together([member], sides, instants, ansi=ansi, block=block)
    if isinstance(result, QueryFailure):
        raise result
    return result
