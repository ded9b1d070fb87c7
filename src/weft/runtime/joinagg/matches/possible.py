"""Which late inputs of a plan the query network may join.

1. They are streams with windows that end: otherwise a match could count for ever.
2. Equality keys connect them with each other. The network would compare all rows within bounds of time otherwise.
3. The conditions between them read plain columns, as those of join queries do: values that only Spark can compute are no keys of the network.
4. Files can hold what the query needs of a row.
"""

from __future__ import annotations

from collections.abc import Collection

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.row_lifts import row_columns
from weft.algebra.joinagg.sources import source_of
from weft.algebra.predicates.slots import plain_name, slot_of
from weft.algebra.scalar import quote
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.network.joins.keys import equalities
from weft.optimizer.joinagg.plans import Plan


def matching_slots(query: AggregationJoin, plan: Plan) -> tuple[int, ...]:
    """The inputs that the network may join, in their order; none if there are not several. Of several groups of connected ones it is the largest."""
    late = {
        slot
        for slot, (entry, early) in enumerate(zip(query.inputs, plan, strict=True))
        if not early and entry.window is not None and entry.window.length
    }
    groups = [{slot} for slot in sorted(late)]
    for pair in _connected(query, late):
        joined = [group for group in groups if group & pair]
        groups = [group for group in groups if not group & pair] + [set().union(*joined)]
    largest = max(groups, key=lambda group: (len(group), -min(group)), default=set())
    possible = len(largest) > 1 and _reads_columns(query, largest)
    return tuple(sorted(largest)) if possible and _storable(query, largest) else ()


def _connected(query: AggregationJoin, late: Collection[int]) -> list[set[int]]:
    """The pairs of late inputs with an equality between them."""
    slots = range(1, len(query.inputs))
    literals = {literal for slot in slots for literal in equalities(query.predicates, slot)}
    pairs = [{slot_of(name) for name in literal.names} for literal in literals]
    return [pair for pair in pairs if len(pair) == 2 and pair <= {*late}]


def _reads_columns(query: AggregationJoin, slots: Collection[int]) -> bool:
    values = {
        (slot, attribute.name): attribute.value.sql
        for slot in slots
        for attribute in query.inputs[slot].attributes
    }
    names = query.predicates.within(slots).names
    return all(values[slot_of(name), plain_name(name)] == quote(plain_name(name)) for name in names)


def _storable(query: AggregationJoin, slots: Collection[int]) -> bool:
    try:
        for slot in slots:
            for made in row_columns(source_of(query, slot), None).all:
                arrow_type(made.type)
    except ValueError:
        return False
    return True
