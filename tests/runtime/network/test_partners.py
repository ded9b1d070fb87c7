"""Semi-joins and anti-joins through the network's engine, on the driver and in tasks, against DuckDB."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.closed_oracle import Oracle, bound, contents, second_of, steps, waiting_texts
from tests.support.closed_queries import Closing
from tests.support.network_engine import EngineRun
from tests.support.network_steps import SECOND, STREAMS, GeneratedPlans, table

from weft.algebra.network.sets import NetworkQuery


@dataclass(frozen=True)
class Registered:
    """A query under the id that the catalog would give it."""

    text: Closing
    number: int

    @property
    def id(self) -> str:
        return self.query().id

    def query(self) -> NetworkQuery:
        return bound(self.text.sql, self.number, self.number)


@settings(max_examples=8, deadline=None)
@given(
    st.lists(waiting_texts(), min_size=3, max_size=3, unique=True),
    steps(),
    contents(),
    st.lists(st.booleans(), min_size=5, max_size=5),
    st.integers(0, 5),
    st.integers(1, 4),
)
def test_rows_are_those_of_duckdb_on_the_driver_and_in_tasks(
    queries: list[Closing],
    deltas: list[dict[str, pa.Table]],
    tables: dict[str, pa.Table],
    in_lanes: list[bool],
    restart: int,
    after: int,
) -> None:
    """The third query comes later, and the first one goes. Steps run here or there."""
    every = [Registered(text, number) for number, text in enumerate(queries)]
    oracle = Oracle(tables)
    with TemporaryDirectory() as folder:
        run = EngineRun(Path(folder), every[:2], plan=GeneratedPlans(), lane_cap_bytes=600)
        for number, delta in enumerate(deltas, 1):
            if number == restart:
                run.restart()
            live = every[:2] if number <= after else every[1:]
            run.use(live)
            before, now = second_of(number - 1), second_of(number, flush=not delta)
            oracle.add(delta, before)
            emitted = run.step(
                {name: delta.get(name, table("a", [])) for name in STREAMS} | tables,
                now * SECOND,
                registered=1 if number <= after else 2,
                in_lanes=in_lanes[number - 1],
            )
            for query in live:
                first = after + 1 if query.number == 2 else 1
                expected = oracle.new(query.text, first, now)
                assert emitted.pop(query.id, Counter()) == expected, (query.text.sql, number)
            assert not emitted and not run.failed


def test_rows_without_a_key_wait_in_tasks() -> None:
    """A row whose key is NULL matches nothing, and is shown like the others when it is closed."""
    sql = "SELECT k FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.ts = a.ts)"
    query = Registered(Closing(sql, sql, "", "a.ts", 0, True), 0)
    row = {"ts": 5 * SECOND, "#time": 5 * SECOND, "#step": 1}
    come = table("a", [{**row, "k": None}, {**row, "k": 1}, {**row, "k": 2}])
    partners = table("a", [{**row, "k": 2}, {**row, "k": None}])
    with TemporaryDirectory() as folder:
        run = EngineRun(Path(folder), [query], plan=GeneratedPlans())
        assert not run.step({"a": come, "b": partners}, 4 * SECOND, in_lanes=True)
        run.restart()
        nothing = {name: table("a", []) for name in STREAMS}
        closed = run.step(nothing, 5 * SECOND, in_lanes=True)
        assert closed == {query.id: Counter({(None,): 1, (1,): 1})}
        assert not run.step(nothing, 9 * SECOND, in_lanes=False)
        assert not run.last.live["retained"]
