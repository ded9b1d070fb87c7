"""What the inputs of an aggregation join hold at an instant, from what is known of their streams."""

from __future__ import annotations

from collections.abc import Callable

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.sources import source_of
from weft.algebra.predicates.slots import plain_name, slot_of
from weft.kernel.network.joins.keys import equalities
from weft.optimizer.joinagg.weft_cost import InputLoad, JoinLoad
from weft.runtime.joinagg.inputs import is_updated
from weft.stats import StreamStatistics

_SECOND = 1_000_000
_LANDMARK = 24 * 3600 * _SECOND
"""The length that a window without end is priced with."""
_TABLE_ROWS = 1000.0
"""Rows that a table is priced with."""


def load_of(
    query: AggregationJoin,
    statistics: Callable[[str], StreamStatistics],
    matchable: frozenset[int] = frozenset(),
) -> JoinLoad:
    """The load of a query's inputs, of which the network may join some."""
    known = {
        entry.relation: statistics(entry.relation)
        for entry in query.inputs
        if entry.window is not None
    }
    inputs = tuple(_input(query, slot, known) for slot in range(len(query.inputs)))
    counts = sum(aggregate.slot is None for aggregate in query.aggregates)
    return JoinLoad(inputs, _values(query, inputs, known), counts, matchable)


def _input(query: AggregationJoin, slot: int, known: dict[str, StreamStatistics]) -> InputLoad:
    entry, source = query.inputs[slot], source_of(query, slot)
    aggregates = sum(aggregate.slot == slot for aggregate in query.aggregates)
    if entry.window is None:
        return InputLoad(_TABLE_ROWS, 0.0, _TABLE_ROWS, 0.0, 0.0, aggregates, is_table=True)
    stream = known[entry.relation]
    rate = stream.rate.value / _SECOND
    if source.predicate is not None:
        rate *= stream.selectivity(source.predicate.sql).value
    length = entry.window.length or _LANDMARK
    rows, in_pane = max(rate * length, 1.0), max(rate * source.pane, 1.0)
    keys = [attribute.value.sql for attribute in source.attributes]
    of_pane, of_window = stream.groups(keys, in_pane), stream.groups(keys, rows)
    new = of_pane * query.step / source.pane
    merged = of_window if entry.window.kind == "landmark" else of_pane * length / source.pane
    if is_updated(entry.window, source):
        merged = min(merged, of_window + 2 * new)  # what comes and what goes, beside the set itself
    return InputLoad(rows, max(rate * query.step, 1.0), of_window, merged, new, aggregates)


def _values(
    query: AggregationJoin, inputs: tuple[InputLoad, ...], known: dict[str, StreamStatistics]
) -> dict[tuple[int, int], float]:
    """By pair of inputs with equal keys, how many values these have."""
    attributes: dict[tuple[int, int], list[set[str]]] = {}
    for right in range(1, len(query.inputs)):
        for literal in equalities(query.predicates, right):
            slots = {slot_of(name) for name in literal.names}
            for left in slots - {right} if right in slots else ():
                if left < right:
                    sides = attributes.setdefault((left, right), [set(), set()])
                    for name in literal.names:
                        sides[slot_of(name) == right].add(plain_name(name))
    return {
        pair: max(
            1.0,
            *(
                _distinct(query, slot, names, inputs[slot], known)
                for slot, names in zip(pair, sides, strict=True)
            ),
        )
        for pair, sides in attributes.items()
    }


def _distinct(
    query: AggregationJoin,
    slot: int,
    names: set[str],
    load: InputLoad,
    known: dict[str, StreamStatistics],
) -> float:
    entry = query.inputs[slot]
    if entry.window is None:
        return load.rows
    keys = [attribute.value.sql for attribute in entry.attributes if attribute.name in names]
    return known[entry.relation].groups(keys, load.rows)
