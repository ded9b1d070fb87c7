"""The bounded tables of `weft bench bounded` lose no row, whatever they pass on."""

from __future__ import annotations

import pyarrow as pa
import pytest

from weft.bench.bounded import _table

SCHEMA = pa.schema([pa.field("key", pa.int64(), nullable=False), pa.field("bytes", pa.int64())])


@pytest.mark.parametrize("entries", [1, 3, 1000])
def test_what_is_passed_on_adds_up(entries: int) -> None:
    keys = [number * number % 17 for number in range(500)]
    rows = pa.table([pa.array(keys), pa.array(range(500))], schema=SCHEMA)
    batches = [*rows.to_batches(max_chunksize=200), *rows.slice(0, 0).to_batches()]
    passed = pa.Table.from_batches(list(_table(entries)(iter(batches))))
    sums = passed.group_by("key").aggregate([("n", "sum"), ("bytes", "sum")]).sort_by("key")
    expected = rows.group_by("key").aggregate([("key", "count"), ("bytes", "sum")]).sort_by("key")
    assert sums.to_pydict()["n_sum"] == expected.to_pydict()["key_count"]
    assert sums.to_pydict()["bytes_sum"] == expected.to_pydict()["bytes_sum"]
    assert len(passed) >= len(expected)


def test_a_task_without_rows() -> None:
    assert list(_table(10)(iter([]))) == []
