"""Tables that are looked up, from the SQL to the new rows of every step, against DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.explain.support import NoAnalyzer, network_of
from tests.support.lookup_queries import COLUMNS, STREAMS, TABLES, Text, texts
from tests.support.network_steps import SECOND, counted, rows_of

from weft.algebra.network.query import JoinQuery
from weft.kernel import network
from weft.kernel.network import Limits
from weft.sql import bind

SMALL = Limits(block=3)
Contents = Mapping[str, pa.Table]


def bound(text: Text, number: int = 0) -> JoinQuery:
    query = bind(
        f"q{number}",
        text.sql,
        STREAMS,
        NoAnalyzer(),
        query_id=f"q{number}@1",
        tables=TABLES,
        time_zone="UTC",
    )
    assert isinstance(query, JoinQuery), query
    return query


def watermark_of(step: int) -> int:
    """After step s: two seconds behind it."""
    return max(0, (step - 2) * SECOND)


@st.composite
def contents(draw: st.DrawFn) -> dict[str, pa.Table]:
    return {name: draw(rows_of("t", 1)) for name in TABLES}


@st.composite
def steps(draw: st.DrawFn, count: int = 3) -> list[dict[str, pa.Table]]:
    """Both streams have the columns of `a`."""
    return [{name: draw(rows_of("a", step)) for name in STREAMS} for step in range(1, count + 1)]


class Oracle:
    """The rows of a text over all rows so far, and the tables as they are now."""

    def __init__(self) -> None:
        self._database = duckdb.connect()
        self._database.execute("SET TimeZone = 'UTC'; SET threads = 1")
        self._rows: dict[tuple[str, bool], list[pa.Table]] = {}

    def add(self, deltas: Contents, watermark_before: int) -> None:
        for name, rows in deltas.items():
            self._rows.setdefault((name, False), []).append(rows)
            times = rows.column("#time").to_pylist()
            above = [time is not None and time > watermark_before for time in times]
            admitted = rows.filter(pa.array(above, pa.bool_()))
            self._rows.setdefault((name, True), []).append(admitted)

    def new(self, text: Text, tables: Contents, step: int) -> Counter[Any]:
        """The rows of the text with the tables' contents of now, of which one row came in the step."""
        return self._rows_of(text, tables, step) - self._rows_of(text, tables, step - 1)

    def _rows_of(self, text: Text, tables: Contents, steps: int) -> Counter[Any]:
        for (name, admitted), rows in self._rows.items():
            if admitted == (text.streams > 1):
                self._database.register(
                    name, pa.concat_tables([rows[0].slice(0, 0), *rows[:steps]])
                )
        for name, rows in tables.items():
            self._database.register(name, rows.select(list(COLUMNS)))
        return counted(self._database.sql(text.for_duckdb).to_arrow_table())


def needed(
    program: network.Program, stream: str, rows: Sequence[pa.Table], watermark: int
) -> list[pa.Table]:
    """The rows that files must still have."""
    span = program.span(stream)
    return [
        part if span is None else part.filter(pc.greater(part.column("#time"), watermark - span))
        for part in rows
    ]


def run(
    queries: Sequence[Text],
    deltas: Sequence[Contents],
    tables: Contents,
    restarts: Mapping[int, Contents],
) -> None:
    """Run a network step by step. Before some steps it is restored from what files would hold, with
    tables that may have changed."""
    bounds = [bound(text, number) for number, text in enumerate(queries)]
    program = network.program(network_of(bounds, tuple(STREAMS.values())))
    oracle = Oracle()
    base: dict[str, list[pa.Table]] = {}
    joined: dict[str, list[pa.Table]] = {}

    def restored(step: int, stale: Collection[str] = ()) -> network.State:
        contents = {name: [rows] for name, rows in tables.items()}
        watermark = watermark_of(step - 1)
        kept = {name: needed(program, name, rows, watermark) for name, rows in base.items()}
        return network.restored(
            program,
            {**kept, **contents},
            joined,
            stale=stale,
            watermark=watermark,
            limits=SMALL,
        )

    state = restored(1)
    for step, delta in enumerate(deltas, 1):
        if step in restarts:
            changed = restarts[step] is not tables
            tables = restarts[step]
            state = restored(step, [node.id for node in program.nodes if changed and node.tables])
        before = watermark_of(step - 1)
        outcome = network.advance(program, state, delta, before, watermark_of(step), {}, SMALL)
        oracle.add(delta, before)
        for number, text in enumerate(queries):
            rows = outcome.results.get(f"q{number}@1")
            new = Counter[Any]() if rows is None else counted(rows)
            assert new == oracle.new(text, tables, step), (text.sql, step)
        assert not outcome.raw
        state = outcome.state
        for name, rows in delta.items():
            base.setdefault(name, []).append(network.admitted(rows, before))
        for join, rows in outcome.joined.items():
            joined.setdefault(join, []).append(rows)


@settings(max_examples=15)
@given(st.lists(texts(), min_size=1, max_size=3), steps(), contents(), st.integers(1, 4))
def test_new_rows_are_those_of_duckdb(
    queries: list[Text],
    deltas: list[dict[str, pa.Table]],
    tables: dict[str, pa.Table],
    restart: int,
) -> None:
    run(queries, deltas, tables, {restart: tables})


@settings(max_examples=10)
@given(
    st.lists(texts(), min_size=1, max_size=3), steps(), contents(), contents(), st.integers(2, 3)
)
def test_matches_have_the_tables_of_the_step_that_emits_them(
    queries: list[Text],
    deltas: list[dict[str, pa.Table]],
    first: dict[str, pa.Table],
    second: dict[str, pa.Table],
    change: int,
) -> None:
    """Whenever their other rows came, and whatever was joined first."""
    run(queries, deltas, first, {change: second})
