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
from weft.optimizer.joinagg.weft_cost import largest_connected


def matching_slots(query: AggregationJoin, plan: Plan) -> tuple[int, ...]:
    """The inputs that the network may join, in their order; none if there are not several. Of several groups of connected ones it is the largest."""
    late = {slot for slot in matchable(query) if not plan[slot]}
    slots = largest_connected(_connected(query), late)
    return slots if _reads_columns(query, slots) else ()


def matchable(query: AggregationJoin) -> frozenset[int]:
    """The inputs that the network may join with others while they are late."""
    return frozenset(
        slot
        for slot, entry in enumerate(query.inputs)
        if entry.window is not None and entry.window.length and _storable(query, slot)
    )


def _connected(query: AggregationJoin) -> list[set[int]]:
    """The pairs of inputs with an equality between them."""
    slots = range(1, len(query.inputs))
    literals = {literal for slot in slots for literal in equalities(query.predicates, slot)}
    pairs = [{slot_of(name) for name in literal.names} for literal in literals]
    return [pair for pair in pairs if len(pair) == 2]


def _reads_columns(query: AggregationJoin, slots: Collection[int]) -> bool:
    values = {
        (slot, attribute.name): attribute.value.sql
        for slot in slots
        for attribute in query.inputs[slot].attributes
    }
    names = query.predicates.within(slots).names
    return all(values[slot_of(name), plain_name(name)] == quote(plain_name(name)) for name in names)


def _storable(query: AggregationJoin, slot: int) -> bool:
    try:
        for made in row_columns(source_of(query, slot), None).all:
            arrow_type(made.type)
    except ValueError:
        return False
    return True
