"""Planning by stream, slide class and lane: every query once, loads added up, classes apart."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.errors import PlacementError
from weft.optimizer.placement.hierarchy import (
    StreamWindows,
    lanes_of,
    planned,
    slide_classes,
)
from weft.workloads.sharing import round_slides, zipf_windows


def streams_of(*sizes: int) -> list[StreamWindows]:
    streams = []
    for number, size in enumerate(sizes):
        table = zipf_windows(size, number + 1, round_slides(600))
        streams.append(StreamWindows(f"s{number}", 50.0, table.names, table.ranges, table.slides))
    return streams


def test_every_query_of_every_stream_is_on_one_lane() -> None:
    streams = streams_of(300, 80, 5)
    plan = planned(streams, 12, balance=0.9, trials_per_item=50)
    placed: dict[str, list[str]] = {}
    for part in plan.parts:
        names = [name for node in part.placement.trees() for tree in node for name in tree]
        placed.setdefault(part.stream, []).extend(names)
        assert len(part.lanes) == len(part.placement.weights) and max(part.lanes) < 12
    for stream in streams:
        assert sorted(placed[stream.name]) == sorted(stream.names)
    assert plan.total_cost == pytest.approx(sum(p.placement.total_cost for p in plan.parts))
    assert plan.max_cost <= 1.5 * float(plan.loads.mean())


def test_slide_classes_are_powers_of_two() -> None:
    (stream,) = streams_of(200)
    for _, number, workload, _ in slide_classes(stream):
        slides = {edge_set[0].slide for edge_set in workload.edge_sets}
        assert all(2 ** (number - 1) <= slide < 2**number for slide in slides)


@given(
    costs=st.lists(st.floats(0.01, 100), min_size=1, max_size=12),
    weights=st.lists(st.sampled_from((1.0, 2.0, 0.5)), min_size=1, max_size=9),
)
def test_each_class_has_lanes_in_proportion(costs: list[float], weights: list[float]) -> None:
    given_lanes = lanes_of(np.array(costs), np.array(weights))
    assert all(lanes and max(lanes) < len(weights) for lanes in given_lanes)
    assert all(part > 0 for lanes in given_lanes for part in lanes.values())
    shares = np.array(costs) / sum(costs) * sum(weights)
    for share, lanes in zip(shares, given_lanes):
        if share >= np.mean(weights) / 2:
            # Slivers of a tenth of a lane at either end are left out.
            assert sum(lanes.values()) >= share - 0.2 * max(weights) - 1e-9
            assert sum(lanes.values()) <= share + 1e-9
        else:
            assert len(lanes) == 1


def test_without_queries_there_is_nothing_to_plan() -> None:
    with pytest.raises(PlacementError, match="no queries"):
        planned([], 4)
