"""The follower of a derived stream, step by step over what a network has published: crashes at every
failpoint, files that are let go, a network that waits for it."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.runtime.network.test_derived import rows
from tests.sql.support import FakeAnalyzer
from tests.support.by_hand import result_store, stepper_over
from tests.support.derived import Published
from tests.support.harness import session
from tests.support.network_engine import EngineRun
from tests.support.network_steps import SECOND, GeneratedPlans, stream

from weft.algebra.network.derived import DerivedQuery, schema_of
from weft.runtime.checkpoint.failpoints import Crash, crashing
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.derived.engine import DerivedEngine, Membership
from weft.runtime.derived.publication import DerivedPublication
from weft.runtime.network.engine import LOG
from weft.runtime.planning.planner import Planner
from weft.runtime.planning.sampling import Sampling
from weft.runtime.protocol.follower import Follower, InputLog
from weft.runtime.protocol.publishing import Consumer, Publisher
from weft.runtime.tables import TableVersions
from weft.runtime.windows.engine import Surroundings, WindowsEngine
from weft.sql import bind

SQL = """SELECT window.start AS start, count(*) AS n FROM a JOIN b ON a.k = b.k
AND b.ts BETWEEN a.ts AND a.ts + INTERVAL 2 SECONDS GROUP BY window(a.ts, '5 seconds')"""


def asked(query_id: str = "q@1", sql: str = SQL) -> DerivedQuery:
    streams = {name: stream(name) for name in "ab"}
    query = bind("q", sql, streams, FakeAnalyzer(), query_id=query_id, time_zone="UTC")
    assert isinstance(query, DerivedQuery), query
    return query


class Chain:
    """A network without Spark, and the follower of one derived stream over it."""

    def __init__(self, spark: SparkSession, folder: Path, queries: Sequence[DerivedQuery]) -> None:
        self.spark, self.queries = spark, list(queries)
        self.name, self.schema = queries[0].stream, schema_of(queries)
        self.network = EngineRun(folder, [Published(tuple(queries))], plan=GeneratedPlans())
        self.restart()

    def restart(self) -> None:
        """Another process."""
        self.network.restart()
        log, settings, sampling = self.network.log(self.name), self.network.settings, Sampling(0)
        sink = result_store(self.network.storage)
        members = Membership(lambda: self.queries, lambda: self.network.last.engine["unseen"])
        planner = Planner(log, self.schema, settings, sampling, members.complete_from)
        tables = TableVersions(self.network.storage, dict, list)
        windows = WindowsEngine(
            Surroundings(log, sink, settings, 2, members.queries, planner, sampling, tables)
        )
        self.engine = DerivedEngine(windows, members, log, self.network.log(LOG))
        self.failed: dict[str, str] = {}
        stepper = stepper_over(log, self.engine, sink, settings, self.failed)
        publication = DerivedPublication(self.name, lambda: bool(self.queries))
        consumer = Consumer(publication, lambda: stepper.last)
        self.publisher = publisher = Publisher(self.network.log(LOG), [consumer])
        self.network.stepper.publisher = publisher
        source = InputLog(
            self.network.log(LOG),
            lambda: self.network.stepper.last,
            publisher.clean,
            lambda: publisher.published_for(consumer),
            lambda: publication.wanted,
            delay=self.schema.delay,
        )
        self.follower = Follower(stepper, [source])

    def advance(self) -> bool:
        return self.follower.advance(lambda: self.spark)

    def results(self) -> Counter[Any]:
        """All results, and how often each is there."""
        store = Storage(f"{self.network.storage.uri}/results")
        counted: Counter[Any] = Counter()
        for entry in self.network.log(self.name).result_files():
            table: pa.Table = store.read_table(entry["name"]).drop_columns(["batch"])
            counted.update(tuple(row.values()) for row in table.to_pylist())
        return counted

    def published(self) -> list[str]:
        log = self.network.log(LOG)
        return self.network.storage.names(log.folder("published"))


def test_a_crash_at_any_failpoint(spark: SparkSession, tmp_path: Path) -> None:
    """A step that ends anywhere is finished by another process: nothing is lost or repeated."""
    own = session(spark)
    before = Chain(own, tmp_path / "before", [asked()])
    before.network.step({"a": rows("a", [1, 2], 10), "b": rows("b", [1, 1], 11)}, 0)
    assert before.advance()
    more = {"a": rows("a", [1, 2], 13), "b": rows("b", [1, 2], 14)}
    before.network.step(more, 9 * SECOND)
    before.network.step({"b": rows("b", [2], 15)}, 22 * SECOND)
    places = tmp_path / "places"
    shutil.copytree(tmp_path / "before", places / "whole")
    whole = Chain(own, places / "whole", [asked()])
    with crashing() as visits:
        assert whole.advance()
    # 10 and 13 are in one window; it is closed when the network's watermark is 2 seconds behind its end.
    (only,) = whole.results()
    assert (only[0], only[2], whole.results().total()) == ("q@1", 5, 1)
    assert whole.follower.last is not None
    assert whole.follower.last.watermark == 20 * SECOND
    assert whole.follower.last.counted["late_rows"] == 0
    assert whole.published() == []
    for failpoint in dict.fromkeys(visits.visited):
        shutil.copytree(tmp_path / "before", places / failpoint)
        chain = Chain(own, places / failpoint, [asked()])
        with crashing(failpoint), pytest.raises(Crash):
            chain.advance()
        chain.restart()
        while chain.advance():
            pass
        assert chain.results() == whole.results(), failpoint
        chain.publisher.clean()
        assert chain.published() == [], failpoint
    assert {"after_read", "after_results", "before_commit", "after_commit"} <= set(visits.visited)


def test_the_network_waits_for_its_follower(spark: SparkSession, tmp_path: Path) -> None:
    chain = Chain(session(spark), tmp_path, [asked()])
    network = Follower(chain.network.stepper, most_unconsumed=1)
    chain.network.step({"a": rows("a", [1], 10), "b": rows("b", [1], 11)}, 0)
    assert not network.waiting
    chain.network.step({"a": rows("a", [1], 12), "b": rows("b", [1], 12)}, 0)
    assert network.waiting
    assert len(chain.published()) == 2
    assert chain.advance()
    assert not network.waiting
    assert chain.published() == []
    assert not chain.advance()


def test_a_query_that_misses_rows_begins_anew(spark: SparkSession, tmp_path: Path) -> None:
    """Its windows are shown again from behind the rows that it has not seen. When the last query is gone,
    nothing is retained."""
    chain = Chain(session(spark), tmp_path, [asked()])
    both = {"a": rows("a", [1], 10), "b": rows("b", [1], 11)}
    chain.network.step(both, 0)
    chain.advance()
    plan = chain.network.log(chain.name).plan(1)
    assert max(plan.complete_from.values()) < 0
    missed = {"a": rows("a", [1], 16), "b": rows("b", [1], 17)}
    chain.network.step(missed, 12 * SECOND, registered=0)
    chain.network.step({"a": rows("a", [1], 26), "b": rows("b", [1], 26)}, 40 * SECOND)
    chain.advance()
    assert [row[1].second for row in chain.results()] == [25]
    chain.queries.clear()
    chain.network.use([])
    chain.network.step({"a": rows("a", [1], 50)}, 41 * SECOND)
    chain.advance()
    assert chain.follower.let_go
    assert chain.follower.resting
    assert chain.follower.last is not None
    assert chain.follower.last.state == ()
