"""From groups at instants to result rows: HAVING, projection, and, for queries that emit changes, what changed.

What the kernel's scalars cannot evaluate, Spark does (`NeedsSpark`); then `Shown` is made from what it gives. The columns
of a result before changes are found: `at`, the keys `k0…`, and the query's own columns as `c0…`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.scalar import Ref, Scalar, is_native, walk
from weft.kernel.columns import scalar as scalars
from weft.kernel.columns.arrow import arrow_type, single
from weft.kernel.columns.operations import Array
from weft.kernel.failure import NeedsSpark
from weft.kernel.joinagg.changes import REMOVED, changed
from weft.kernel.joinagg.evaluation import AT


def projected(query: AggregationJoin, groups: pa.Table, *, ansi: bool) -> pa.Table:
    """The groups that HAVING leaves, in the columns of the query; raises `NeedsSpark`."""
    outputs = shown_columns(query)
    having = [] if query.having is None else [query.having]
    if not all(is_native(scalar) for scalar in (*having, *outputs)):
        raise NeedsSpark(query.id)
    if query.having is not None:
        groups = groups.filter(_evaluated(query.having, groups, ansi))
    columns: dict[str, pa.Array] = {name: groups.column(name) for name in key_columns(query)}
    for place, output in enumerate(outputs):
        values = _evaluated(output, groups, ansi)
        wanted = arrow_type(query.columns[place].type)
        columns[f"c{place}"] = values if values.type == wanted else values.cast(wanted)
    return pa.table(columns)


def key_columns(query: AggregationJoin) -> list[str]:
    """The columns that a result has beside those of the query."""
    return [AT, *(f"k{place}" for place in range(len(query.keys)))]


def shown_columns(query: AggregationJoin) -> list[Scalar]:
    """The outputs that are over groups: all but the mark of removed ones."""
    return [column.value for column in query.columns if column.value != REMOVED_VALUE]


REMOVED_VALUE = Ref(REMOVED, "boolean")


def _evaluated(scalar: Scalar, groups: pa.Table, ansi: bool) -> pa.Array:
    def column(name: str) -> pa.Array:
        return single(groups.column(name))

    return scalars.evaluate(scalar, column, groups.num_rows, ansi=ansi)


def full(query: AggregationJoin, results: pa.Table) -> pa.Table:
    """The whole results, in the query's columns alone."""
    return results.select([f"c{place}" for place in range(len(query.columns))])


def changes(
    query: AggregationJoin, before: pa.Table | None, results: pa.Table, instants: Array
) -> tuple[pa.Table, pa.Table]:
    """The changes in the query's columns, and the result at the last instant. Values of groups decide what has changed; columns
    that only repeat keys stay in removed rows, and columns of the instant alone change nothing."""
    keys, carried = list(key_columns(query)[1:]), []
    for place, output in enumerate(shown_columns(query)):
        names = {part.name for part in walk(output) if isinstance(part, Ref)}
        if AT in names and not any(name.startswith("a") and name != AT for name in names):
            carried.append(f"c{place}")
        elif is_native(output) and not any(name.startswith("a") for name in names):
            keys.append(f"c{place}")
    rows, last = changed(before, results, instants, keys, carried)
    return _columns(query, rows), last


def _columns(query: AggregationJoin, rows: pa.Table) -> pa.Table:
    columns: list[pa.ChunkedArray] = []
    shown = 0
    for column in query.columns:
        if column.value == REMOVED_VALUE:
            columns.append(rows.column(REMOVED))
            continue
        is_instant = isinstance(column.value, Ref) and column.value.name == AT
        columns.append(rows.column(AT if is_instant else f"c{shown}"))
        shown += 1
    return pa.table(columns, names=_names(len(columns)))


def _names(count: int) -> Sequence[str]:
    return [f"c{place}" for place in range(count)]
