"""The result rows of one shape: aggregates of (window, key) pairs, HAVING, projection.

HAVING goes first: the aggregates it needs are computed for all pairs, all others only for the
pairs that it leaves. An aggregate that can fail is computed for all pairs as well, since plain
Spark evaluates it before HAVING.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weft.algebra.aggregate import Aggregate
from weft.algebra.partial import Partial
from weft.algebra.scalar import Ref, Scalar, walk
from weft.algebra.types import BIGINT, decimal_parameters
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.columns.keys import KeyEncoder
from weft.kernel.columns.operations import Array
from weft.kernel.columns.partial_columns import Stored, packed
from weft.kernel.failure import NeedsSpark, QueryFailure
from weft.kernel.fragments.state import KEY_MASK
from weft.kernel.windows import scalar
from weft.kernel.windows.due import Due
from weft.kernel.windows.lower import from_stored, lower
from weft.kernel.windows.positions import Pairs
from weft.kernel.windows.program import DistinctCount, Shape
from weft.kernel.windows.view import View

QUERY_COLUMN = "query"
WINDOW_START, WINDOW_END = "window_start", "window_end"


@dataclass(frozen=True)
class Unfinished:
    """Rows whose HAVING and projection Spark must evaluate."""

    raw: pa.Table


class ShapeFailed(Exception):
    """An aggregate failed; these queries have pairs on which it does."""

    def __init__(self, failures: dict[str, QueryFailure]) -> None:
        super().__init__(", ".join(failures))
        self.failures = failures


@dataclass(frozen=True)
class ShapeRows:
    """Everything that the rows of a shape are made of."""

    shape: Shape
    view: View
    due: Due
    keys: KeyEncoder
    distinct: Callable[[DistinctCount], View]
    ansi: bool
    members: Array | None = None
    """The member of each due window, if the view has several."""

    def rows(self, pairs: Pairs) -> pa.Table | Unfinished:
        """The result rows of some pairs; raises `ShapeFailed`."""
        if not self.shape.native:
            return Unfinished(self._raw(pairs, {}))
        try:
            pairs, columns = self._filtered(pairs)
            return finished(self.shape, self._raw(pairs, columns), ansi=self.ansi)
        except NeedsSpark:
            return Unfinished(self._raw(pairs, {}))

    def _filtered(self, pairs: Pairs) -> tuple[Pairs, dict[str, pa.Array]]:
        """The pairs that HAVING leaves, and the columns that are known for them by then."""
        having = self.shape.having
        if having is None:
            return pairs, {}
        needed = references([having])
        needed |= {
            f"a{index}"
            for index, aggregate in enumerate(self.shape.aggregates)
            if self.ansi and can_fail(aggregate)
        }
        columns = {name: self._column(name, pairs) for name in sorted(needed)}
        kept = pa.array(np.arange(len(pairs.windows))).filter(
            scalar.evaluate(having, _table(columns, len(pairs.windows)), ansi=self.ansi)
        )
        places = kept.to_numpy()
        left = Pairs(
            pairs.windows[places], pairs.keys[places], pairs.low[places], pairs.high[places]
        )
        return left, {name: values.take(kept) for name, values in columns.items()}

    def _raw(self, pairs: Pairs, computed: dict[str, pa.Array]) -> pa.Table:
        """Keys, window and aggregates of every pair."""
        names = [QUERY_COLUMN, WINDOW_START, WINDOW_END]
        names += [f"k{index}" for index in range(len(self.shape.key_types))]
        names += [f"a{index}" for index in range(len(self.shape.aggregates))]
        columns = {
            name: computed[name] if name in computed else self._column(name, pairs)
            for name in names
        }
        return pa.table(columns)

    def _column(self, name: str, pairs: Pairs) -> pa.Array:
        if name == QUERY_COLUMN:
            ids = pa.array([query.id for query in self.shape.queries], pa.string())
            return ids.take(pa.array(self.due.queries[pairs.windows]))
        if name in (WINDOW_START, WINDOW_END):
            bounds = self.due.starts if name == WINDOW_START else self.due.ends
            return pa.array(bounds[pairs.windows]).cast(arrow_type(self.shape.bounds))
        index = int(name[1:])
        if name[0] == "k":
            return from_stored(
                self.keys.decode(index, pairs.keys & KEY_MASK), self.shape.key_types[index]
            )
        return self._aggregate(index, pairs)

    def _aggregate(self, index: int, pairs: Pairs) -> pa.Array:
        inputs = self.shape.inputs[index]
        if isinstance(inputs, DistinctCount):
            return distinct_counts(self.distinct(inputs), self.due, pairs, self.members)
        combined = [self.view.combiner.over(p, pairs.low, pairs.high) for p in inputs]
        if self.shape.publishes:
            return _published(inputs, combined)
        try:
            return lower(self.shape.aggregates[index], combined, ansi=self.ansi)
        except QueryFailure as failure:
            failures = self._blamed(pairs)
            if not failures:
                raise
            raise ShapeFailed(failures) from failure

    def _blamed(self, pairs: Pairs) -> dict[str, QueryFailure]:
        """The queries whose own windows make an aggregate fail."""
        failures: dict[str, QueryFailure] = {}
        for index, query in enumerate(self.shape.queries):
            of_query = self.due.queries[pairs.windows] == index
            for aggregate, inputs in zip(self.shape.aggregates, self.shape.inputs, strict=True):
                if isinstance(inputs, DistinctCount) or not of_query.any():
                    continue
                low, high = pairs.low[of_query], pairs.high[of_query]
                try:
                    combined = [self.view.combiner.over(p, low, high) for p in inputs]
                    lower(aggregate, combined, ansi=True)
                except QueryFailure as cause:
                    failures[query.id] = cause
        return failures


def _published(inputs: Sequence[Partial], combined: Sequence[Stored]) -> pa.Array:
    """The partials of an aggregate, not lowered: what a follower combines further."""
    arrays = [packed(p, stored) for p, stored in zip(inputs, combined, strict=True)]
    return pa.StructArray.from_arrays(arrays, [f"p{index}" for index in range(len(arrays))])


def references(scalars: Iterable[Scalar]) -> set[str]:
    """The raw columns that scalars read."""
    names = {part.name for root in scalars for part in walk(root) if isinstance(part, Ref)}
    if "window" in names:
        names = names - {"window"} | {WINDOW_START, WINDOW_END}
    return names


def can_fail(aggregate: Aggregate) -> bool:
    """Whether lowering it can raise: sums that overflow, of integers and decimals."""
    if aggregate.function not in ("sum", "avg") or aggregate.distinct:
        return False
    type_ = aggregate.arguments[0].type
    return type_ == BIGINT or decimal_parameters(type_) is not None


def finished(shape: Shape, raw: pa.Table, *, ansi: bool) -> pa.Table:
    """The projection, on rows that HAVING left."""
    columns = [raw.column(QUERY_COLUMN)]
    for output, type_ in zip(shape.outputs, shape.types, strict=True):
        value = scalar.evaluate(output, raw, ansi=ansi)
        columns.append(value if value.type == arrow_type(type_) else value.cast(arrow_type(type_)))
    return pa.table(columns, names=output_names(len(shape.outputs)))


def output_names(width: int) -> list[str]:
    """The columns of a result family: the query, then its columns by position."""
    return [QUERY_COLUMN, *(f"c{index}" for index in range(width))]


def family_schema(types: Sequence[str]) -> pa.Schema:
    """The Arrow schema of a result family."""
    names = output_names(len(types))
    return pa.schema(
        [pa.field(names[0], pa.string())]
        + [pa.field(n, arrow_type(t)) for n, t in zip(names[1:], types, strict=True)]
    )


def distinct_counts(view: View, due: Due, pairs: Pairs, members: Array | None) -> pa.Array:
    """The number of distinct values that occur in each (window, group) pair."""
    if view.positions is None or not len(pairs.windows):
        return pa.array(np.zeros(len(pairs.keys), np.int64))
    keys, first = np.unique(view.state.keys, return_index=True)
    group_codes, groups = np.unique(view.state.groups[first], return_inverse=True)
    used, slots = np.unique(pairs.windows, return_inverse=True)
    window_members = None if members is None else members[used]
    places = [np.zeros(0, np.int64)]
    counts = [np.zeros(0, np.int64)]
    for distinct_pairs in view.positions.pairs(due.starts[used], due.ends[used], window_members):
        group = groups[np.searchsorted(keys, distinct_pairs.keys)]
        slot, count = np.unique(
            distinct_pairs.windows * len(group_codes) + group, return_counts=True
        )
        places.append(slot)
        counts.append(count)
    tallied, where = np.unique(np.concatenate(places), return_inverse=True)
    totals = np.bincount(where, np.concatenate(counts), len(tallied)).astype(np.int64)
    group = np.searchsorted(group_codes, pairs.keys)
    present = group_codes[np.minimum(group, len(group_codes) - 1)] == pairs.keys
    wanted = slots * len(group_codes) + group
    position = np.searchsorted(tallied, wanted)
    position = np.minimum(position, max(len(tallied) - 1, 0))
    if not len(tallied):
        return pa.array(np.zeros(len(pairs.keys), np.int64))
    return pa.array(np.where(present & (tallied[position] == wanted), totals[position], 0))


def _table(columns: dict[str, pa.Array], rows: int) -> pa.Table:
    """A table with a number of rows, even if it has no columns of its own."""
    return pa.table(columns or {"": pa.nulls(rows)})
