"""The rows of a table, sorted for one lookup, and the matches of other rows among them.

Where only the existence of a match counts, of the table's rows that agree in all compared columns one is
kept. Time: one search for each row, and one look-up per candidate and condition.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weft.algebra.predicates.slots import column_name
from weft.kernel.columns.column import Column, to_arrow
from weft.kernel.columns.operations import Array
from weft.kernel.network.conditions import Evaluation
from weft.kernel.network.joins.history import sorted_keys
from weft.kernel.network.joins.keys import candidate_pairs, key_values
from weft.kernel.network.lookups.compiled import CompiledLookup, Matching, Tests
from weft.kernel.network.passing import Limits
from weft.kernel.network.rows import Pairs, Rows, Segment

_POSITION = "#position"


@dataclass(frozen=True, eq=False)
class SortedTable:
    """The rows of a table that may match, by key."""

    rows: Rows
    positions: Array
    keys: Array


@dataclass(frozen=True, eq=False)
class LookupTable:
    """All that a lookup needs of its table."""

    rows: Rows
    matching: SortedTable
    unknown: tuple[SortedTable, ...]
    absent: Mapping[str, Column]
    """What Spark computes of a row of NULLs, by the name of the column: for rows without a match."""


def lookup_table(
    lookup: CompiledLookup, rows: Rows, absent: Mapping[str, Column], *, ansi: bool
) -> LookupTable:
    """A table made ready for a lookup."""
    exists = lookup.kind == "mark"
    return LookupTable(
        rows,
        _sorted(lookup.matching, rows, ansi=ansi, distinct=exists),
        tuple(_sorted(matching, rows, ansi=ansi, distinct=True) for matching in lookup.unknown),
        absent,
    )


def _sorted(matching: Matching, rows: Rows, *, ansi: bool, distinct: bool) -> SortedTable:
    chosen = _passing(matching.of_table, rows, ansi=ansi)
    keys, valid = key_values(matching.key.right, rows, ansi=ansi)
    if valid is not None:
        chosen = chosen[valid[chosen]]
    if distinct:
        chosen = _distinct(rows, matching.columns, chosen)
    order, sorted_values = sorted_keys(keys[chosen])
    return SortedTable(rows, chosen[order], sorted_values)


def _passing(tests: Tests, rows: Rows, *, ansi: bool) -> Array:
    chosen = Evaluation(tests.conditions, rows, ansi=ansi).filtered(tests.numbers)
    return np.arange(rows.count) if chosen is None else chosen


def _distinct(rows: Rows, columns: tuple[str, ...], chosen: Array) -> Array:
    """One of the chosen positions for every combination of values."""
    if not columns:
        return chosen[:1]
    values = {
        f"c{number}": to_arrow(rows.column(column_name(0, name)).take(chosen))
        for number, name in enumerate(columns)
    }
    grouped = pa.table({**values, _POSITION: chosen}).group_by(list(values), use_threads=False)
    first = grouped.aggregate([(_POSITION, "min")]).column(f"{_POSITION}_min")
    return np.sort(first.to_numpy())


Count = Callable[[int, int], None]
"""Is told how many candidates were looked at, and how many of them match. Raises if they are too many."""


def matches(
    matching: Matching, table: SortedTable, rows: Rows, limits: Limits, count: Count
) -> tuple[Array, Array]:
    """The matches of rows in a table: positions of both."""
    probing = _passing(matching.of_row, rows, ansi=limits.ansi)
    keys, valid = key_values(matching.key.left, rows, ansi=limits.ansi)
    if valid is not None:
        probing = probing[valid[probing]]
    left: list[Array] = []
    right: list[Array] = []
    for probes, others in candidate_pairs(
        matching.key, keys[probing], table.keys, True, limits.block
    ):
        segment = Segment(rows, probing[probes], table.rows, table.positions[others])
        evaluation = Evaluation(matching.of_pair.conditions, Pairs((segment,), 1), ansi=limits.ansi)
        chosen = evaluation.filtered(matching.of_pair.numbers)
        everything = chosen is None
        left.append(segment.left_positions if everything else segment.left_positions[chosen])
        right.append(segment.right_positions if everything else segment.right_positions[chosen])
        count(segment.count, len(left[-1]))
    empty = np.zeros(0, np.int64)
    return np.concatenate([empty, *left]), np.concatenate([empty, *right])
