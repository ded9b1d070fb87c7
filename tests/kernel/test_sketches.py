"""Columns of sketches: merged as if one by one, whatever is equal among them."""

from __future__ import annotations

import datasketches as ds
import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.kernel.test_ranges import ranges

from weft.algebra.partial import Associative, Partial
from weft.kernel.combine import Combiner, over_runs
from weft.kernel.sketches import SketchColumn, estimates

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


def column(sets: Sets) -> SketchColumn:
    return SketchColumn.of("hll", pa.array([hll(each) for each in sets], pa.binary()))


def distinct(sets: Sets) -> int:
    return len(set().union(*(each for each in sets if each is not None)))


def starts(data: st.DataObject, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Runs that are the whole column."""
    cuts = data.draw(st.sets(st.integers(1, max(length - 1, 1))))
    low = np.array([0, *sorted(cut for cut in cuts if cut < length)])
    return low, np.append(low[1:], length)


@given(st.data(), SETS)
def test_distinct_values_of_runs(data: st.DataObject, sets: Sets) -> None:
    low, high = starts(data, len(sets))
    (found,) = over_runs(HLL, {HLL.name: (column(sets),)}, low, high)
    wanted = [distinct(sets[a:b]) for a, b in zip(low, high, strict=True)]
    assert estimates(found).tolist() == wanted
    assert estimates(SketchColumn.of("hll", found.to_arrow())).tolist() == wanted


@given(st.data(), SETS)
def test_distinct_values_of_ranges(data: st.DataObject, sets: Sets) -> None:
    low, high = data.draw(ranges(len(sets)))
    (found,) = Combiner({HLL.name: (column(sets),)}).over(HLL, low, high)
    assert estimates(found).tolist() == [
        distinct(sets[a:b]) for a, b in zip(low, high, strict=True)
    ]


@given(SETS, SETS, st.data())
def test_columns_are_taken_and_concatenated(one: Sets, other: Sets, data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(one) - 1), max_size=9))
    taken = column(one).take(np.array(places, np.int64))
    joined = SketchColumn.concatenated([taken, column(other)])
    wanted = [one[place] for place in places] + other
    assert estimates(joined).tolist() == [len(each or ()) for each in wanted]
    assert len(joined.table) <= 1 + len({hll(each) for each in wanted})


@given(st.data(), st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=3), min_size=1))
def test_equal_quantile_sketches_count_each(data: st.DataObject, rows: list[list[int]]) -> None:
    """Merging two equal ones is not the same as having one."""
    values = SketchColumn.of("kll_bigint", pa.array([kll(row) for row in rows], pa.binary()))
    runs, spans = starts(data, len(rows)), data.draw(ranges(len(rows)))
    (merged,) = over_runs(KLL, {KLL.name: (values,)}, *runs)
    (ranged,) = Combiner({KLL.name: (values,)}).over(KLL, *spans)
    for found, (low, high) in ((merged, runs), (ranged, spans)):
        sketches, places = found.distinct()
        for place, a, b in zip(places, low, high, strict=True):
            pooled = sorted(value for row in rows[a:b] for value in row)
            assert sketches[place].n == len(pooled)
            assert sketches[place].get_quantile(0.5, True) == pooled[(len(pooled) - 1) // 2]
