"""From when on a query's windows are complete, as plans change their weave groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from tests.kernel.test_weave import STREAM, Row, fragment_table, query

from weft.algebra.plan import Node, SharedPlan, Sharing
from weft.algebra.query import Query
from weft.algebra.window import Window
from weft.kernel.windows.program import compile_program
from weft.kernel.windows.weave import Step, weave
from weft.optimizer.weaving import Parts
from weft.runtime.checkpoint.commits import Commit, Entry
from weft.runtime.level1 import statefiles
from weft.runtime.level1.tiles import Extract
from weft.runtime.planning.versions import next_plan, updated_versions
from weft.runtime.windows.openstate import OpenState

Result = tuple[str, int, int]


class Apart:
    """Every query by itself, or all together, with two or three levels."""

    sharing = Sharing("drawn")

    def __init__(self, levels: int, apart: bool) -> None:
        self._levels, self._apart = levels, apart

    def parts(self, queries: Sequence[Query]) -> Parts:
        return Parts(self._levels, [[q] for q in queries] if self._apart else [queries])

    def tree(self, plan: SharedPlan, readers: Mapping[str, Sequence[Query]]) -> Sequence[Node]:
        return plan.nodes


class Log:
    """Plans and state files in memory."""

    def __init__(self) -> None:
        self.plans: dict[int, SharedPlan] = {}
        self.tables: dict[str, pa.Table] = {}

    def plan(self, version: int) -> SharedPlan:
        return self.plans[version]

    def plan_versions(self) -> list[int]:
        return list(self.plans)

    def file(self, entry: Entry) -> Any:
        return File(entry, self.tables[entry["name"]])


@dataclass(frozen=True)
class File:
    """A state file in memory."""

    entry: Entry
    table: pa.Table

    def read(self, extract: Extract, columns: Sequence[str]) -> list[pa.Table]:
        return [extract.holds(self.table).select(list(columns))]


def run(steps: list[tuple[list[Query], Apart, list[Row]]]) -> list[Result]:
    """(query, window's end, count) of all results, every step read from files as after a restart."""
    log: Any = Log()
    last: Commit | None = None
    latest = 0
    found: list[Result] = []
    for batch, (queries, weaving, rows) in enumerate(steps):
        plan = next_plan(log, STREAM, queries, last, weaving)
        log.plans[plan.version] = plan
        program = compile_program(plan)
        before = last.watermark if last else 0
        now = max(before, latest)
        new = []
        for node in plan.nodes:
            table = fragment_table(node, rows)
            log.tables[f"{batch}{node.id}"] = table
            ends = table["fragment_end"].to_pylist()
            entry = {"name": f"{batch}{node.id}", "node": node.id, "version": plan.version}
            new.append({**entry, "rows": table.num_rows, "max_end": max(ends)})
        files = [*(last.state if last else ()), *new]
        opened, read = OpenState().read(log, [log.file(entry) for entry in files])
        step = Step(before, now, ansi=False)
        state, due = opened.with_rows(program, read).due(program, step)
        woven = weave(program, due, state.encoders, step)
        for tables in woven.families.values():
            for row in pa.concat_tables(tables).to_pylist():
                end = row["c1"].second * 1_000_000 + row["c1"].microsecond
                found.append((row["query"], end, row["c2"]))
        seen = max(row[0] for row in rows)
        latest = max(latest, seen)
        horizons = statefiles.horizons(program, now, last.engine["horizons"] if last else {})
        kept, _ = statefiles.live(files, horizons)
        last = Commit(
            *("s", "data", batch, batch, None, "", "", 0, plan.version, now, latest, {}),
            live={"state": tuple(kept)},
            engine={"versions": updated_versions(last, plan, seen, kept), "horizons": horizons},
        )
    return found


def test_a_new_query_never_counts_a_fragment_that_its_windows_cut() -> None:
    """
    q1  |----------------------------- 60 -----------------------------|
    q2  |--10--|--10--|--10--|--10--|--10--|--10--|   registered later
    rows     7     12                                61       75   80

    The first version's fragment (0, 60] holds row 7. Under two levels q2 has a node of its own;
    back under one node it finds that fragment, and must not count it in (50, 60].
    """
    q1, q2 = query(1, Window(60, 60), None), query(2, Window(10, 10), None)
    steps: list[tuple[list[Query], Apart, list[Row]]] = [
        ([q1], Apart(3, apart=False), [(7, "a", 1)]),
        ([q1, q2], Apart(2, apart=True), [(12, "a", 1)]),
        ([q1, q2], Apart(3, apart=False), [(61, "a", 1), (75, "a", 1)]),
        ([q1, q2], Apart(3, apart=False), [(80, "a", 1)]),
        ([q1, q2], Apart(2, apart=True), [(95, "a", 1)]),
    ]
    assert run(steps) == [("q@1", 60, 2), ("q@2", 70, 1), ("q@2", 80, 1)]
