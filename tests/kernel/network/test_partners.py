"""Semi-joins and anti-joins of streams, from the SQL to the rows of every step, against DuckDB.

The oracle asks DuckDB for the whole query over all rows admitted so far; of anti-joins, over the rows that are
closed. What is new in a step must be what the network shows in it, and nothing may ever be taken back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.explain.support import NoAnalyzer
from tests.support.closed_queries import Closing, texts
from tests.support.lookup_queries import COLUMNS, STREAMS, TABLES
from tests.support.network_steps import SECOND, counted, rows_of, table

from weft.algebra.network.plan import NetworkPlan
from weft.algebra.network.query import JoinQuery
from weft.kernel import network
from weft.kernel.network import Limits
from weft.optimizer.network.estimate import HeuristicEstimate
from weft.optimizer.network.generate import with_queries
from weft.optimizer.network.index import ScanIndex
from weft.optimizer.network.options import Options
from weft.sql import bind

SMALL = Limits(block=3)
Contents = Mapping[str, pa.Table]
Steps = Mapping[int, int]
"""For queries, by their numbers, a step."""


def bound(sql: str, number: int = 0) -> JoinQuery:
    query = bind(
        f"q{number}", sql, STREAMS, NoAnalyzer(), query_id=f"q{number}@1", tables=TABLES, time_zone="UTC"
    )  # fmt: skip
    assert isinstance(query, JoinQuery), query
    return query


def second_of(step: int) -> int:
    """The watermark after a step: two seconds behind it. Step 9 is a flush far ahead."""
    return max(0, step - 2) if step < 9 else 100


@st.composite
def steps(draw: st.DrawFn, count: int = 4) -> list[dict[str, pa.Table]]:
    """Both streams have the columns of `a`. The last step has no rows: the watermark alone moves."""
    rows = [{name: draw(rows_of("a", step)) for name in STREAMS} for step in range(1, count + 1)]
    return [*rows, {}]


class Oracle:
    """The rows of texts over all rows so far."""

    def __init__(self, tables: Contents) -> None:
        self._database = duckdb.connect()
        self._database.execute("SET TimeZone = 'UTC'; SET threads = 1")
        self._rows: dict[str, list[pa.Table]] = {name: [] for name in STREAMS}
        for name, rows in tables.items():
            self._database.register(name, rows.select(list(COLUMNS)))
        self._before: dict[Closing, Counter[Any]] = {}

    def add(self, deltas: Contents, second_before: int) -> None:
        for name, rows in deltas.items():
            above = pc.greater(rows.column("#time"), second_before * SECOND)
            self._rows[name].append(rows.filter(above))

    def new(self, text: Closing, first: int, second: int) -> Counter[Any]:
        """The rows that the text has since the last time, over rows that came with a step or later."""
        for name, parts in self._rows.items():
            rows = pa.concat_tables([table("a", []), *parts])
            rows = rows.filter(pc.greater_equal(rows.column("#step"), first))
            self._database.register(name, rows.select(["ts", *COLUMNS]))
        now = counted(self._database.sql(text.over_closed(second)).to_arrow_table())
        before = self._before.get(text, Counter())
        assert not before - now, "a row would have to be taken back"
        self._before[text] = now
        return now - before


class Run:
    """A network of queries that come and go, and everything that a restart would read."""

    def __init__(self, tables: Contents) -> None:
        self._tables = tables
        self._plan, self._index = NetworkPlan(0), ScanIndex()
        self._base: dict[str, list[pa.Table]] = {}
        self._joined: dict[str, list[pa.Table]] = {}
        self._shown: dict[str, list[pa.Table]] = {}
        self.program: network.Program
        self.state: network.State

    def use(self, queries: Mapping[int, str], second: int) -> None:
        """Go on with these queries, restored from what files would hold."""
        live = {f"q{number}@1" for number in queries}
        new = [
            bound(sql, n) for n, sql in queries.items() if f"q{n}@1" not in self._plan.query_by_id
        ]
        gone = [query.id for query in self._plan.queries if query.id not in live]
        streams = tuple(STREAMS.values())
        self._plan = with_queries(
            self._plan, new, gone, streams, self._index, Options(), HeuristicEstimate()
        )
        self.program = network.program(self._plan)
        self.restart(second)

    def restart(self, second: int) -> None:
        kept = {name: self._needed(name, rows, second) for name, rows in self._base.items()}
        contents = {name: [rows] for name, rows in self._tables.items()}
        joins = {n: rows for n, rows in self._joined.items() if n in self.program.node_by_id}
        self.state = network.restored(
            self.program,
            {**kept, **contents},
            joins,
            shown={n: rows for n, rows in self._shown.items() if n in self.program.outputs},
            watermark=second * SECOND,
            limits=SMALL,
        )

    def _needed(self, stream: str, rows: Sequence[pa.Table], second: int) -> list[pa.Table]:
        """The rows that files must still have."""
        span = self.program.span(stream)
        if span is None:
            return list(rows)
        return [
            part.filter(pc.greater(part.column("#time"), second * SECOND - span)) for part in rows
        ]

    def step(
        self, deltas: Contents, seconds: tuple[int, int], from_steps: Mapping[int, int]
    ) -> dict[int, Counter[Any]]:
        before, after = (second * SECOND for second in seconds)
        first = {f"q{n}@1": dict.fromkeys(STREAMS, step) for n, step in from_steps.items()}
        outcome = network.advance(self.program, self.state, deltas, before, after, first, SMALL)
        assert not outcome.raw
        self.state = outcome.state
        for name, rows in deltas.items():
            self._base.setdefault(name, []).append(network.admitted(rows, before))
        for join, rows in outcome.joined.items():
            self._joined.setdefault(join, []).append(rows)
        for memory, rows in outcome.shown.items():
            self._shown.setdefault(memory, []).append(rows)
        return {int(name[1:-2]): counted(rows) for name, rows in outcome.results.items()}


def check(
    queries: Sequence[Closing],
    deltas: Sequence[Contents],
    tables: Contents,
    added: Steps,
    dropped: Steps,
    restart: int,
) -> Run:
    """Run queries step by step. Each is there from a step on, until another one."""
    oracle, run = Oracle(tables), Run(tables)
    live: dict[int, str] = {}
    for step, delta in enumerate(deltas, 1):
        number = step if delta else 9
        seconds = second_of(step - 1), second_of(number)
        now = {
            n: text.sql
            for n, text in enumerate(queries)
            if added.get(n, 1) <= step < dropped.get(n, 99)
        }
        if now != live or step == 1:
            run.use(now, seconds[0])
            live = now
        elif step == restart:
            run.restart(seconds[0])
        oracle.add(delta, seconds[0])
        late = {n: added[n] for n in now if added.get(n, 1) > 1}
        shown = run.step(delta, seconds, late)
        for n in now:
            expected = oracle.new(queries[n], added.get(n, 1), seconds[1])
            assert shown.pop(n, Counter()) == expected, (queries[n].sql, step)
        assert not shown
    return run


def contents() -> st.SearchStrategy[dict[str, pa.Table]]:
    return st.fixed_dictionaries({name: rows_of("t", 1) for name in TABLES})


some_steps = st.dictionaries(st.integers(0, 2), st.integers(1, 5), max_size=3)


@settings(max_examples=60)
@given(
    st.lists(texts(), min_size=1, max_size=3), steps(), contents(), some_steps, some_steps, st.integers(2, 5)
)  # fmt: skip
def test_rows_are_those_of_duckdb_once_they_are_closed(
    queries: list[Closing],
    deltas: list[dict[str, pa.Table]],
    tables: dict[str, pa.Table],
    added: dict[int, int],
    dropped: dict[int, int],
    restart: int,
) -> None:
    """With NULL keys, late rows, duplicates, queries that come and go, and restarts."""
    check(list(dict.fromkeys(queries)), deltas, tables, added, dropped, restart)
