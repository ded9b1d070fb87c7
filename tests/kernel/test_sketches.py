"""Columns of sketches: merged as if one by one, whatever is equal among them."""

from __future__ import annotations

from collections.abc import Callable
from unittest.mock import patch

import datasketches as ds
import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.kernel.test_ranges import ranges

from weft.algebra.partial import Associative, Partial
from weft.kernel.columns.combine import Combiner, over_runs
from weft.kernel.columns.sketches import sketch_sets
from weft.kernel.columns.sketches.sketch_column import (
    SketchColumn,
    Sketches,
    concatenated,
    from_arrow,
)
from weft.kernel.columns.sketches.sketch_sets import SketchSets

HLL = Partial("hll_sketch_agg(x, 12)", "binary", Associative("hll"))
KLL = Partial("kll_sketch_agg_bigint(x, 200)", "binary", Associative("kll_bigint"))

Sets = list[set[int] | None]
SETS = st.lists(st.none() | st.sets(st.integers(0, 9), max_size=4), min_size=1, max_size=40)


def hll(values: set[int] | None) -> bytes | None:
    if values is None:
        return None
    sketch = ds.hll_sketch(12, ds.tgt_hll_type.HLL_8)
    for value in values:
        sketch.update(value)
    return bytes(sketch.serialize_updatable())


def kll(values: list[int]) -> bytes:
    sketch = ds.kll_items_sketch(200)
    for value in values:
        sketch.update(value)
    return bytes(sketch.serialize(ds.PyLongsSerDe()))


def coded(sets: Sets) -> SketchColumn:
    return SketchColumn.of("hll", [hll(values) for values in sets], np.arange(len(sets)))


def small(sets: Sets) -> Sketches:
    """As a state file would be read: sets if they are few enough."""
    return from_arrow("hll", pa.array([hll(values) for values in sets], pa.binary()))


FORMS = st.sampled_from([coded, small])
Form = Callable[[Sets], Sketches]


def distinct(sets: Sets) -> int:
    return len(set().union(*(values for values in sets if values is not None)))


def starts(data: st.DataObject, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Runs that are the whole column."""
    cuts = data.draw(st.sets(st.integers(1, max(length - 1, 1))))
    low = np.array([0, *sorted(cut for cut in cuts if cut < length)])
    return low, np.append(low[1:], length)


@given(st.data(), SETS, FORMS)
def test_distinct_values_of_runs(data: st.DataObject, sets: Sets, form: Form) -> None:
    low, high = starts(data, len(sets))
    (merged,) = over_runs(HLL, {HLL.name: (form(sets),)}, low, high)
    wanted = [distinct(sets[a:b]) for a, b in zip(low, high, strict=True)]
    assert merged.estimates().tolist() == wanted
    assert from_arrow("hll", merged.to_arrow()).estimates().tolist() == wanted


@given(st.data(), SETS, FORMS)
def test_distinct_values_of_ranges(data: st.DataObject, sets: Sets, form: Form) -> None:
    low, high = data.draw(ranges(len(sets)))
    (merged,) = Combiner({HLL.name: (form(sets),)}).over(HLL, low, high)
    assert merged.estimates().tolist() == [
        distinct(sets[a:b]) for a, b in zip(low, high, strict=True)
    ]


@given(SETS, SETS, FORMS, FORMS, st.data())
def test_columns_are_taken_and_concatenated(
    one: Sets, other: Sets, form: Form, other_form: Form, data: st.DataObject
) -> None:
    places = data.draw(st.lists(st.integers(0, len(one) - 1), max_size=9))
    taken = form(one).take(np.array(places, np.int64))
    joined = concatenated([taken, other_form(other)])
    wanted = [one[position] for position in places] + other
    assert joined.estimates().tolist() == [len(values or ()) for values in wanted]
    if isinstance(joined, SketchColumn):
        assert len(joined.table) <= 1 + len({hll(values) for values in wanted})


@given(st.lists(SETS, min_size=2, max_size=4), st.integers(1, 12), st.data())
def test_sets_that_become_too_many(columns: list[Sets], most: int, data: st.DataObject) -> None:
    """Merged, concatenated and merged again, with room for few sketches: the same."""
    with patch.object(sketch_sets, "MOST", most):
        joined = small(columns[0])
        rows = list(columns[0])
        for sets in columns[1:]:
            low, high = starts(data, len(rows))
            joined = concatenated([joined.over_runs(low, high), small(sets)])
            merged = [rows[a:b] for a, b in zip(low, high, strict=True)]
            together = [_union(parts) for parts in merged]
            rows = [*together, *sets]
        assert joined.estimates().tolist() == [len(values or ()) for values in rows]
        low, high = data.draw(ranges(len(rows)))
        ranged = joined.over_ranges(low, high)
        wanted = [distinct(rows[a:b]) for a, b in zip(low, high, strict=True)]
        assert ranged.estimates().tolist() == wanted


def _union(sets: Sets) -> set[int] | None:
    present = [values for values in sets if values is not None]
    return set().union(*present) if present else None


def test_few_sketches_are_sets_and_many_are_not() -> None:
    few: Sets = [{value} for value in range(sketch_sets.MOST)]
    assert isinstance(small(few), SketchSets)
    many: Sets = [*few, {sketch_sets.MOST}]
    assert isinstance(small(many), SketchColumn)
    joined = concatenated([small(few), small([{sketch_sets.MOST}])])
    assert isinstance(joined, SketchColumn)
    assert joined.estimates().tolist() == [1] * len(many)


@given(st.data(), st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3), min_size=1))
def test_equal_quantile_sketches_count_each(data: st.DataObject, rows: list[list[int]]) -> None:
    """Merging two equal ones is not the same as having one."""
    values = from_arrow("kll_bigint", pa.array([kll(row) for row in rows], pa.binary()))
    assert isinstance(values, SketchColumn)
    runs, spans = starts(data, len(rows)), data.draw(ranges(len(rows)))
    (merged,) = over_runs(KLL, {KLL.name: (values,)}, *runs)
    (ranged,) = Combiner({KLL.name: (values,)}).over(KLL, *spans)
    for column, (low, high) in ((merged, runs), (ranged, spans)):
        sketches, places = column.distinct()
        for number, a, b in zip(places, low, high, strict=True):
            pooled = sorted(value for row in rows[a:b] for value in row)
            assert sketches[number].n == len(pooled)
            assert sketches[number].get_quantile(0.5, True) == pooled[(len(pooled) - 1) // 2]
