"""Queries with backfill through the network's engine, on the driver and in tasks, against DuckDB.

A query with backfill sees the rows that history holds when it is added, those that were published and not yet
consumed, and those that are published for it; of the first two only rows that have all its columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol
from unittest.mock import patch

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.closed_oracle import bound, contents, waiting_texts
from tests.support.closed_queries import Closing
from tests.support.equal_keys import rows as rows_at
from tests.support.equal_keys import same_key
from tests.support.network_engine import EngineRun, numbered
from tests.support.network_steps import (
    SECOND,
    STEP,
    STREAMS,
    TIME,
    GeneratedPlans,
    Spec,
    UnionSpec,
    counted,
    histories,
    rows_of,
    specs,
    table,
    union_specs,
    watermark_of,
)

from weft.algebra.network.sets import NetworkQuery
from weft.runtime.checkpoint.commits import RETAINED, STATE


class Text(Protocol):
    """A query of a test."""

    @property
    def id(self) -> str: ...
    def query(self) -> NetworkQuery: ...
    def over(self, watermark: int) -> str:
        """What DuckDB is asked: the query over `a`, `b`, or `a+`, `b+` for rows that joins admit."""


@dataclass(frozen=True)
class Joining:
    """A filter, a join or a union of such."""

    spec: Spec | UnionSpec

    @property
    def id(self) -> str:
        return self.spec.id

    def query(self) -> NetworkQuery:
        return self.spec.query()

    def over(self, watermark: int) -> str:
        return self.spec.over_rows({})


@dataclass(frozen=True)
class Waiting:
    """A query with EXISTS, EXCEPT and the like over streams."""

    text: Closing
    number: int

    @property
    def id(self) -> str:
        return self.query().id

    def query(self) -> NetworkQuery:
        return bound(self.text.sql, self.number, self.number)

    def over(self, watermark: int) -> str:
        admitted = 'WITH a AS (SELECT * FROM "a+"), b AS (SELECT * FROM "b+") '
        return admitted + self.text.over_closed(watermark // SECOND)


@dataclass(frozen=True)
class Backfilled:
    """A query with backfill."""

    text: Text

    @property
    def id(self) -> str:
        return self.text.id

    def query(self) -> NetworkQuery:
        return replace(self.text.query(), backfill=True)


@dataclass
class Visible:
    """The rows that a query sees, by stream: all of them, and those that joins have admitted."""

    every: dict[str, list[pa.Table]] = field(default_factory=dict)
    admitted: dict[str, list[pa.Table]] = field(default_factory=dict)
    shown: Counter[Any] = field(default_factory=Counter)

    def add(self, relation: str, rows: pa.Table, watermark_before: int | None = None) -> None:
        self.every.setdefault(relation, []).append(rows)
        if watermark_before is not None:
            rows = rows.filter(pc.greater(rows.column(TIME), watermark_before))
        self.admitted.setdefault(relation, []).append(rows)

    def new(
        self, text: Text, empty: pa.Table, tables: Mapping[str, pa.Table], watermark: int
    ) -> Counter[Any]:
        """What DuckDB says of the rows, without what it said before."""
        with duckdb.connect() as database:
            database.execute("SET TimeZone = 'UTC'; SET threads = 1")
            for name in STREAMS:
                for suffix, rows in (("", self.every), ("+", self.admitted)):
                    parts = [table(name, []) if empty is None else empty, *rows.get(name, [])]
                    together = pa.concat_tables(parts, promote_options="default")
                    database.register(name + suffix, together)
            for name, rows_of_table in tables.items():
                database.register(name, rows_of_table)
                database.register(f"{name}+", rows_of_table)
            now = counted(database.sql(text.over(watermark)).to_arrow_table())
        assert not self.shown - now
        new, self.shown = now - self.shown, now
        return new


class Run:
    """Streams, the network, and what each query should see."""

    def __init__(
        self,
        folder: Path,
        first: Sequence[Text],
        tables: Mapping[str, pa.Table],
        empty: pa.Table | None = None,
    ) -> None:
        self.tables, self.empty = tables, empty
        self.engine = EngineRun(folder, first, plan=GeneratedPlans(), lane_cap_bytes=600)
        self.engine._tables.update(tables)
        self.live = {text.id: text for text in first}
        self.visible = {text.id: Visible() for text in first}
        self.backfilled: set[str] = set()
        self.waiting: list[tuple[str, pa.Table, int]] = []
        self.watermark = 0

    def publish(self, relation: str, rows: pa.Table, registered: int, *without: str) -> None:
        """A step of a stream for the queries up to a registration, without columns that nobody reads."""
        read = {name for text in self.live.values() for name in text.query().columns_of(relation)}
        rows = rows.drop_columns([name for name in without if name not in read])
        self.engine.publish(relation, rows, 0, registered)
        self.engine._read.add(relation)
        self.waiting.append((relation, rows, registered))

    def add(self, text: Text, *, backfill: bool) -> None:
        self.live[text.id] = text
        self.visible[text.id] = Visible()
        if backfill:
            self.backfilled.add(text.id)
            for relation, rows in self._history():
                if text.query().columns_of(relation) <= set(rows.column_names):
                    self.visible[text.id].add(relation, rows)
        self._use()

    def drop(self, query: str) -> None:
        del self.live[query]
        self._use()

    def _use(self) -> None:
        self.engine.use(
            [Backfilled(t) if t.id in self.backfilled else t for t in self.live.values()]
        )

    def _history(self) -> list[tuple[str, pa.Table]]:
        """The rows of streams that files of history hold and joins have admitted."""
        last = self.engine.stepper.last
        held = []
        for entry in (*last.live[RETAINED], *last.live[STATE]) if last else ():
            if "relation" in entry:
                rows = self.engine.storage.read_table(entry["name"])
                if "above" in entry:
                    rows = rows.filter(pc.greater(rows.column(TIME), entry["above"]))
                if STEP not in rows.column_names:
                    rows = rows.append_column(STEP, pa.array([0] * rows.num_rows, pa.int64()))
                held.append((entry["relation"], rows))
        return held

    def step(self, watermark: int, *, in_lanes: bool) -> int:
        """A step of the network; how many rows queries with backfill have shown."""
        for relation, rows, registered in self.waiting:
            for query, text in self.live.items():
                served = int(query.rsplit("@", 1)[1]) <= registered
                known = text.query().columns_of(relation) <= set(rows.column_names)
                if served or (query in self.backfilled and known):
                    self.visible[query].add(relation, rows, self.watermark)
        self.waiting.clear()
        emitted = self.engine.step({}, watermark, in_lanes=in_lanes)
        self.watermark = watermark
        assert not self.engine.failed
        shown = 0
        for query, text in self.live.items():
            expected = self.visible[query].new(text, self.empty, self.tables, watermark)
            assert emitted.pop(query, Counter()) == expected, (query, text)
            shown += expected.total() if query in self.backfilled else 0
        assert not emitted
        return shown


def any_specs(name: str) -> st.SearchStrategy[Spec | UnionSpec]:
    return st.one_of(specs(name), specs(name), union_specs(name))


class Story:
    """Queries that come and go while streams are ahead of the network, and columns are missing."""

    def __init__(self, data: st.DataObject, run: Run, texts: Sequence[Text]) -> None:
        self._draw, self._run, self._texts = data.draw, run, texts
        self.shown = 0

    def _maybe(self, one_in: int = 2) -> bool:
        return self._draw(st.integers(1, one_in)) == 1

    def _step(self, watermark: int) -> None:
        if self._maybe(5):
            self._run.engine.restart()
        self.shown += self._run.step(max(watermark, self._run.watermark), in_lanes=self._maybe())

    def tell(self, deltas: Sequence[Mapping[str, pa.Table]]) -> None:
        """The first two queries run; two come with a backfill and one without after some step; the last
        one comes with a backfill at the end."""
        run, texts = self._run, self._texts
        after = self._draw(st.integers(1, len(deltas) - 1))
        for number, delta in enumerate(deltas, 1):
            missing = self._draw(st.sampled_from([(), (), ("s",), ("x", "m")]))
            for name in STREAMS:
                rows = delta.get(name, table(name, []))
                registered = 1 if number <= after else 4
                run.publish(name, rows, registered, *(missing if number <= after else ()))
            if number != after:
                if not self._maybe(4):
                    self._step(watermark_of(number))
                continue
            if self._maybe():
                self._step(watermark_of(number))
            for text in texts[2:4]:
                run.add(text, backfill=True)
            run.add(texts[4], backfill=False)
            if self._maybe():
                run.drop(texts[self._draw(st.integers(0, 1))].id)
            if self._maybe():
                self._step(run.watermark)
        run.add(texts[5], backfill=True)
        self._step(watermark_of(len(deltas)))
        self._step(100 * SECOND)
        self._step(100 * SECOND)


@settings(max_examples=3, deadline=None)
@given(st.data(), st.sampled_from([2, 64]))
def test_filters_joins_and_unions(data: st.DataObject, most_files: int) -> None:
    texts = [Joining(numbered(data.draw(any_specs(f"q{n}")), n)) for n in range(5)]
    again = data.draw(st.sampled_from(texts)).spec
    texts.append(Joining(replace(again, id="again@5")))
    deltas = data.draw(histories(5))
    tables = {"t": deltas[0].pop("t")}
    with (
        TemporaryDirectory() as folder,
        patch("weft.runtime.network.history.MOST_FILES", most_files),
    ):
        story = Story(data, Run(Path(folder), texts[:2], tables), texts)
        story.tell(deltas)


@settings(max_examples=3, deadline=None)
@given(st.data(), st.lists(waiting_texts(), min_size=6, max_size=6), contents())
def test_exists_and_except(
    data: st.DataObject, closings: list[Closing], tables: dict[str, pa.Table]
) -> None:
    texts = [Waiting(text, number) for number, text in enumerate(closings)]
    deltas = [{name: data.draw(rows_of("a", n)) for name in STREAMS} for n in range(1, 5)]
    with TemporaryDirectory() as folder:
        run = Run(Path(folder), texts[:2], tables, table("a", []))
        Story(data, run, texts).tell(deltas)


@pytest.mark.parametrize("in_lanes", [False, True], ids=["driver", "lanes"])
def test_a_backfill_that_is_too_large_is_quarantined_and_can_be_brought_back(
    tmp_path: Path, in_lanes: bool
) -> None:
    """It has shown nothing, the others go on, and when it comes back it is given what history holds then.
    One that is quarantined later is not given it again."""
    keeper, wild = same_key("keeper@1", within=1), same_key("wild@2")
    copies = {name: rows_at(name, [7] * 20, 10) for name in STREAMS}
    apart = {name: rows_at(name, [7] * 20, 50) for name in STREAMS}
    run = EngineRun(tmp_path, [keeper], plan=GeneratedPlans(), most_matches=900)
    run.step(copies, 0, registered=1, in_lanes=in_lanes)
    emitted = run.step(apart, 0, registered=1, in_lanes=in_lanes)
    assert emitted == {"keeper@1": Counter({(n, m): 1 for n in range(20) for m in range(20)})}
    run.use([keeper, Backfilled(Joining(wild))])
    assert run.step({}, 0, registered=2, in_lanes=in_lanes) == {}
    assert list(run.failed) == ["wild@2"] and "more than 900 matches" in run.failed["wild@2"]
    run.use([keeper])
    assert run.step({}, 0, registered=2, in_lanes=in_lanes) == {}
    run.settings = replace(run.settings, most_matches=2000)
    run.restart()
    run.use([keeper, Backfilled(Joining(wild))])
    assert run.step({}, 0, registered=2, in_lanes=in_lanes)["wild@2"].total() == 40 * 40
    assert run.step({}, 0, registered=2, in_lanes=in_lanes) == {}
    run.use([keeper])
    run.step({}, 0, registered=2, in_lanes=in_lanes)
    run.use([keeper, Backfilled(Joining(wild))])
    assert run.step({}, 0, registered=2, in_lanes=in_lanes) == {}
