"""Streams of the AggJoin paper: seeded, in time order, independent and uniform, as many groups and join values as asked."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from weft.workloads.aggjoin.streams import GROUP, JOIN, TIME, VALUE, StreamShape, names, stream

SHAPE = StreamShape(rate=300, groups=12, join_values=10)


def test_a_stream_follows_from_its_seed_and_number() -> None:
    assert stream(SHAPE, 500).equals(stream(SHAPE, 500))
    columns = [GROUP, JOIN, VALUE]
    assert not stream(SHAPE, 500).select(columns).equals(stream(SHAPE, 500, 1).select(columns))
    assert not stream(SHAPE, 500).select(columns).equals(stream(SHAPE, 500, seed=2).select(columns))


def test_a_longer_stream_begins_with_the_shorter_one() -> None:
    assert stream(SHAPE, 1000).slice(0, 137).equals(stream(SHAPE, 137))


def test_types_are_those_of_the_paper_and_times_follow_the_rate() -> None:
    table = stream(SHAPE, 601)
    assert table.schema.types == [
        pa.timestamp("us", tz="UTC"),
        pa.string(),
        pa.string(),
        pa.int64(),
    ]
    times = table[TIME].cast(pa.int64()).to_numpy()
    assert (np.diff(times) > 0).all()
    assert times[300] - times[0] == 1_000_000 and times[600] - times[0] == 2_000_000


def test_attributes_are_uniform_and_independent() -> None:
    """By chi-squared, with a fixed seed: the largest of 119 degrees of freedom for a chance of one in a million."""
    table = stream(SHAPE, 60_000)
    assert pc.count_distinct(table[GROUP]).as_py() == 12
    assert set(table[JOIN].to_pylist()) == set(names("j", 10))
    assert (pc.min(table[VALUE]).as_py(), pc.max(table[VALUE]).as_py()) == (1, 100)
    counts = table.group_by([GROUP, JOIN]).aggregate([([], "count_all")])["count_all"].to_numpy()
    assert len(counts) == 120
    assert ((counts - 500) ** 2 / 500).sum() < 205


@pytest.mark.parametrize("shape", [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_a_stream_without_rows_groups_or_values_is_refused(shape: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="a stream of"):
        StreamShape(*shape)
