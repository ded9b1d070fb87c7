"""Flows: seeded, in time order, skewed as in the paper, and with attributes that depend on each other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from weft.experiments.memory.measured import MeasuredStatistics
from weft.experiments.memory.node_codes import encode
from weft.experiments.memory.parameters import FITTED, PAPER_ALPHA
from weft.workloads.flows import ATTRIBUTES, PAIRS, RECORDS, TIME, epoch, flows, random_pairs


@pytest.fixture(scope="module")
def measured() -> MeasuredStatistics:
    return MeasuredStatistics(encode(epoch(), ATTRIBUTES), RECORDS)


def test_the_same_seed_gives_the_same_records_and_another_others() -> None:
    one, same, other = flows(1, 2, 500), flows(1, 2, 500), flows(2, 2, 500)
    assert one.equals(same)
    assert not one.equals(other)
    assert len(ATTRIBUTES) == 13 and len(PAIRS) == 78


def test_epochs_are_five_minutes_in_time_order() -> None:
    table = flows(epochs=2, records=300)
    assert table.schema.field(TIME).type == pa.timestamp("us", tz="UTC")
    micros = table[TIME].cast(pa.int64()).to_numpy()
    assert (np.diff(micros) >= 0).all()
    assert micros[300] // 300_000_000 == micros[0] // 300_000_000 + 1
    assert (table["packets"].to_numpy() >= 1).all()
    assert (table["bytes"].to_numpy() >= 40 * table["packets"].to_numpy()).all()


def test_frequencies_fall_as_in_the_paper(measured: MeasuredStatistics) -> None:
    for node, alpha in zip(FITTED, PAPER_ALPHA):
        assert measured.alpha(node) == pytest.approx(alpha, abs=0.05)


def test_attributes_depend_on_each_other(measured: MeasuredStatistics) -> None:
    def groups(*names: str) -> float:
        return measured.groups(frozenset(names))

    assert groups("src_addr", "src_as") == groups("src_addr")
    assert groups("dst_addr", "dst_as", "next_hop", "output_if") == groups("dst_addr")
    assert groups("dst_as", "next_hop") == groups("dst_as")
    everything = frozenset(ATTRIBUTES)
    assert groups(*everything) < 0.8 * RECORDS
    assert max(measured.groups(pair) for pair in PAIRS) < RECORDS / 2


def test_random_pairs_are_some_of_the_queries() -> None:
    assert set(random_pairs(20, 1)) < set(PAIRS)
    assert random_pairs(20, 1) == random_pairs(20, 1) != random_pairs(20, 2)
    assert random_pairs(78) == PAIRS
