"""The network benchmark's parts that need no Spark, small."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.bench.measuring.arrivals import Arrivals
from weft.bench.network.benchmark import FED_INCREMENTS, PARTS
from weft.bench.network.kernel import fed_inputs, grown
from weft.bench.network.lookups import addition_chart, additions
from weft.bench.network.steps import Increments
from weft.experiments.argus.run import estimate_of
from weft.optimizer.network.index import ScanIndex
from weft.optimizer.network.options import Options
from weft.workloads.fed.queries import queries, varied
from weft.workloads.fed.stream import store_transfers


def test_the_sizes_are_those_of_the_paper() -> None:
    assert (FED_INCREMENTS.history, FED_INCREMENTS.increment) == (300_000, 4_000)
    assert Increments(10, 2, 1, 3).rows == 18
    assert {"fed", "floor", "baseline-spark", "baseline-duckdb", "alone"} < set(PARTS)
    assert {"no-join-sharing", "scaling", "rules", "register"} < set(PARTS)


def test_files_arrive_in_stream_order(tmp_path: Path) -> None:
    stored = store_transfers(tmp_path / "fed", records=3000, per_file=500)
    arrivals = Arrivals(stored, tmp_path / "arriving")
    assert arrivals.arrive(1000) == 1000
    names = sorted(path.name for path in (tmp_path / "arriving").iterdir())
    assert names == ["000000.parquet", "000001.parquet"]
    assert arrivals.arrive(500) == 500
    assert (tmp_path / "arriving" / "000002.parquet").exists()
    assert arrivals.arrive(9000) == 1500


def test_without_join_sharing_a_network_does_more_for_the_same_results() -> None:
    given = fed_inputs(queries(48), 8_000, 1_000, 1)
    shared = grown(given, Options())
    unshared = grown(given, Options(share_joins=False), by_node=True)
    assert shared.executed.results == unshared.executed.results > 0
    assert shared.joins < unshared.joins == sum(query.ways - 1 for query in queries(48))
    assert shared.executed.physical_joins < unshared.executed.physical_joins == unshared.joins
    assert shared.executed.candidates < unshared.executed.candidates


def test_physical_joins_do_not_grow_with_queries() -> None:
    counts = [grown(fed_inputs(varied(n), 4_000, 500, 1), Options()) for n in (32, 96)]
    assert counts[1].executed.physical_joins < 2 * counts[0].executed.physical_joins


def test_additions_are_timed_by_size() -> None:
    given = fed_inputs(queries(24), 2_000, 500, 1)
    points = additions(given.bound, given.schema, ScanIndex(), estimate_of(given), (8, 24))
    assert [point.queries for point in points] == [8, 24]
    assert points[0].nodes < points[1].nodes
    assert all(point.seconds > 0 for point in points)
    assert addition_chart(points).to_dict()["title"] == "Adding a query to the network"


@pytest.mark.parametrize("part", PARTS)
def test_every_part_says_what_it_measures(part: str) -> None:
    assert PARTS[part].__doc__
