"""Semi-joins and anti-joins of streams, from the SQL to the rows of every step, against DuckDB.

The oracle asks DuckDB for the whole query over all rows admitted so far; of anti-joins, over the rows that are
closed. What is new in a step must be what the network shows in it, and nothing may ever be taken back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.closed_oracle import (
    Contents,
    Oracle,
    bound,
    contents,
    second_of,
    steps,
    waiting_texts,
)
from tests.support.closed_queries import Closing
from tests.support.lookup_queries import STREAMS
from tests.support.network_steps import SECOND, counted

from weft.algebra.network.plan import NetworkPlan
from weft.kernel import network
from weft.kernel.network import Limits
from weft.optimizer.network.estimate import HeuristicEstimate
from weft.optimizer.network.generate import with_queries
from weft.optimizer.network.index import ScanIndex
from weft.optimizer.network.options import Options

SMALL = Limits(block=3)
Steps = Mapping[int, int]
"""For queries, by their numbers, a step."""


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
        shown: dict[int, Counter[Any]] = {}
        for name, rows in outcome.results.items():
            query = self.program.outputs[name].query.id
            shown.setdefault(int(query[1:-2]), Counter()).update(counted(rows))
        return shown


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
        seconds = second_of(step - 1), second_of(step, flush=not delta)
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


some_steps = st.dictionaries(st.integers(0, 2), st.integers(1, 5), max_size=3)


@settings(max_examples=60)
@given(
    st.lists(waiting_texts(), min_size=1, max_size=3), steps(), contents(), some_steps, some_steps, st.integers(2, 5)
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
