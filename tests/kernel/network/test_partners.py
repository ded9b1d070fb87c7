"""Semi-joins and anti-joins of streams, from the SQL to the rows of every step, against DuckDB.

The oracle asks DuckDB for the whole query over all rows admitted so far; of anti-joins, over the rows that are
closed. What is new in a step must be what the network shows in it, and nothing may ever be taken back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
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
from tests.support.network_steps import SECOND, counted, table

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


@settings(max_examples=20)
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


def rows(stream: str, step: int, *pairs: tuple[int | None, int]) -> dict[str, pa.Table]:
    """Rows of a stream with a key and an event time in seconds."""
    return {
        stream: table(
            "a",
            [
                {"k": key, "ts": datetime.fromtimestamp(second, UTC), "#time": second * SECOND}
                | {"#step": step}
                for key, second in pairs
            ],
        )
    }


def test_every_row_is_shown_in_the_step_that_closes_it() -> None:
    """Ten rows come together and are closed one after the other. History is rewritten only now and then,
    so closed rows are still in it."""
    window = "b.ts BETWEEN a.ts - INTERVAL 5 SECONDS AND a.ts + INTERVAL 2 SECONDS"
    run = Run({})
    run.use(
        {0: f"SELECT k FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND {window})"}, 0
    )
    keys = [*range(9), None]
    come = rows("a", 1, *((key, 10 + place) for place, key in enumerate(keys)))
    assert not run.step(come | rows("b", 1, (3, 14), (4, 17), (5, 10)), (0, 11), {})
    shown = [run.step({}, (second - 1, second), {}).get(0) for second in range(12, 23)]
    assert shown == [
        None if key in (3, 5) else Counter({(key,): 1}) for key in keys
    ] + [None]  # fmt: skip
    run.step({}, (22, 40), {})
    assert run.state.rows == 0


def test_a_late_partner_changes_nothing() -> None:
    """Rows at or below the watermark are not admitted, on either side."""
    run = Run({})
    sql = "SELECT a.k FROM a LEFT ANTI JOIN b ON a.k = b.k AND b.ts = a.ts"
    run.use({0: sql, 1: sql.replace("ANTI", "SEMI")}, 0)
    assert not run.step(rows("a", 1, (1, 5), (2, 8)), (0, 4), {})
    assert run.step(rows("b", 2, (1, 4), (2, 8)) | rows("a", 2, (7, 4)), (4, 5), {}) == {
        0: Counter({(1,): 1}),
        1: Counter({(2,): 1}),
    }
    assert not run.step(rows("b", 3, (1, 5)), (5, 90), {})


def test_queries_with_other_bounds_share_the_search() -> None:
    """Members of one physical anti-join, each of which closes rows at its own time."""
    queries = {
        number: "SELECT k FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k AND b.ts >= a.ts "
        f"AND b.ts <= a.ts + INTERVAL {number} SECONDS)"
        for number in (1, 3)
    }
    run = Run({})
    run.use(queries, 0)
    assert sum(node.join is not None for node in run.program.nodes) == 1
    assert not run.step(rows("a", 1, (1, 10), (2, 10)) | rows("b", 1, (1, 12)), (0, 10), {})
    assert run.step({}, (10, 11), {}) == {1: Counter({(1,): 1, (2,): 1})}
    assert not run.step({}, (11, 12), {})
    assert run.step({}, (12, 13), {}) == {3: Counter({(2,): 1})}


def test_set_operations_on_unions() -> None:
    """Each SELECT on the left of EXCEPT is compared; what is beside it in a UNION ALL is not."""
    run = Run({})
    run.use(
        {
            0: "(SELECT ts, k FROM a UNION ALL SELECT ts, k FROM b) EXCEPT SELECT ts, k FROM a WHERE k > 1",
            1: "SELECT k, ts FROM b WHERE k = 9 UNION ALL (SELECT k, ts FROM a EXCEPT SELECT k, ts FROM b)",
        },
        0,
    )
    come = rows("a", 1, (1, 5), (1, 5), (2, 5), (None, 5)) | rows("b", 1, (2, 5), (9, 5), (None, 5))
    at = datetime.fromtimestamp(5, UTC).replace(tzinfo=None)
    assert run.step(come, (0, 4), {}) == {1: Counter({(9, at): 1})}
    assert run.step({}, (4, 5), {}) == {
        0: Counter({(at, 1): 1, (at, 9): 1, (at, None): 1}),
        1: Counter({(1, at): 1}),
    }
