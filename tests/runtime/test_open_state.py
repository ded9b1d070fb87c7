"""Open fragments in slots, in tiles and on lanes give what the rows themselves give, step by step.

Rows come late, fragments expire, queries come and go with new plan versions. The model looks at all
rows in every step, and knows nothing of fragments.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernel.test_weave import ODD, ROWS, STREAM, Row, brute_force, fragment_table, query
from tests.kernel.test_weave import windows as drawn_windows

from weft.algebra.plan import Node
from weft.algebra.query import Query
from weft.algebra.scalar import Expression
from weft.algebra.window import Window
from weft.kernel.fragments import slots as slots_module
from weft.kernel.fragments.buckets import buckets
from weft.kernel.windows.program import Program, compile_program
from weft.kernel.windows.weave import Step, late, weave
from weft.runtime.checkpoint.commits import Commit, Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.level1 import statefiles, tiles
from weft.runtime.level1.fragments import BUCKETS
from weft.runtime.level1.tiles import Extract, StateFile, write_tiles
from weft.runtime.planning.versions import next_plan, updated_versions
from weft.runtime.sinks.store import ResultStore
from weft.runtime.windows.lanes import LaneWork, _Lane, run_here
from weft.runtime.windows.memory import bytes_in_memory
from weft.runtime.windows.openstate import OpenState
from weft.runtime.windows.placement import placed
from weft.runtime.windows.spans import due_spans


@dataclass(frozen=True)
class Turn:
    """A step: rows, how far the watermark goes, which queries run, on how many lanes."""

    rows: list[Row]
    advance: int
    queries: int
    lanes: int


TURNS = st.lists(
    st.builds(Turn, ROWS, st.integers(0, 30), st.integers(1, 3), st.integers(1, 5)),
    min_size=1,
    max_size=5,
)
CASES = st.lists(st.tuples(drawn_windows(), st.sampled_from([None, ODD])), min_size=3, max_size=3)


@contextmanager
def small() -> Iterator[None]:
    """Slots, tiles and files of a few rows, so that all of them are cut and merged."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slots_module, "PIECE", 3)
        patch.setattr(slots_module, "LARGE", 6)
        patch.setattr(slots_module, "_COALESCE_ABOVE", 2)
        patch.setattr(tiles, "GROUP_ROWS", 4)
        patch.setattr(tiles, "BLOCK_ROWS", 16)
        patch.setattr(tiles, "_ROWS_AT_ONCE", 5)
        patch.setattr(statefiles, "MOST_FILES", 2)
        yield


class Steps:
    """A stream without Spark: level 1 by hand, state files, commits."""

    def __init__(self, folder: Path) -> None:
        self.log = StreamLog(Storage(folder), "s")
        self.store = ResultStore(str(folder / "results"), "owner")
        self.last: Commit | None = None
        self.opened: tuple[int, OpenState] | None = None
        self.rows: list[Row] = []
        self.batch = 0

    def step(self, turn: Turn, queries: Sequence[Query], lanes: bool) -> None:
        last = self.last
        before = last.watermark if last else 0
        if last is None or [q.id for q in queries] != [
            q.id for q in self.log.plan(last.plan_version).queries
        ]:
            plan = next_plan(self.log, STREAM, queries, last)
            self.log.put_plan(plan)
        else:
            plan = self.log.plan(last.plan_version)
        program = compile_program(plan)
        now = before + turn.advance
        self.rows += turn.rows
        new = [entry for node in plan.nodes for entry in self._written(node, turn, plan.version)]
        files = list(last.state) if last else []
        step = Step(before, now, ansi=False)
        run = self._in_lanes if lanes else self._here
        results, tardy = run(program, files, new, step, turn.lanes)
        self._check(results, tardy, turn, program, step)
        horizons = statefiles.horizons(program, now, last.engine["horizons"] if last else {})
        kept, _ = statefiles.live([*files, *new], horizons)
        spark: Any = None
        kept, _ = statefiles.compacted(spark, self.log, f"{self.batch}-compact", kept, horizons)
        seen = max((row[0] for row in turn.rows), default=None)
        self.last = Commit(
            *("s", "data", self.batch, self.batch, None, "", "", 0, plan.version, now, now, {}),
            live={"state": tuple(kept)},
            engine={"versions": updated_versions(last, plan, seen, kept), "horizons": horizons},
        )
        if self.opened is not None:
            self.opened = (plan.version, self.opened[1].after(program, now))
        self.batch += 1

    def _written(self, node: Node, turn: Turn, version: int) -> list[Entry]:
        table = fragment_table(node, turn.rows)
        if not table.num_rows:
            return []
        owners = buckets([table["k0"].combine_chunks()], table.num_rows, BUCKETS)
        name = f"{self.log.folder('state')}/{self.batch}-{node.id}/part.parquet"
        write_tiles(self.log.storage, name, table.append_column("bucket", pa.array(owners)))
        return [statefiles.describe(self.log, name, node.id, version)]

    def _here(
        self, program: Program, files: list[Entry], new: list[Entry], step: Step, _: int
    ) -> tuple[list[pa.Table], dict[str, int]]:
        """As on the driver: state stays in memory while the plan does."""

        def stored(entries: list[Entry]) -> list[StateFile]:
            return [StateFile(self.log.storage, entry) for entry in entries]

        if self.opened is None or self.opened[0] != program.plan.version:
            opened, rows = OpenState().read(self.log, stored(files))
            self.opened = (program.plan.version, opened.with_rows(program, rows))
        opened, rows = self.opened[1].read(self.log, stored(new))
        tardy = late(program, rows, opened.encoders, step.before)
        state, due = opened.with_rows(program, rows).due(program, step)
        self.opened = (program.plan.version, state)
        for slots in state.pools.values():
            untils = [slot.until for slot in slots.slots]
            assert untils == sorted(set(untils))
        woven = weave(program, due, state.encoders, step)
        return [table for tables in woven.families.values() for table in tables], tardy

    def _in_lanes(
        self, program: Program, files: list[Entry], new: list[Entry], step: Step, lanes: int
    ) -> tuple[list[pa.Table], dict[str, int]]:
        """As in tasks, one after the other, with little memory."""
        placement = placed(program, [1 + lane % 3 for lane in range(lanes)])
        work = LaneWork(
            checkpoint=self.log.storage.uri,
            stream="s",
            plan_version=program.plan.version,
            files=files,
            new_files=new,
            before=step.before,
            now=step.now,
            ansi=step.ansi,
            shares=placement.shares,
            cap_bytes=300,
            step=str(self.batch),
            batch=self.batch,
            attempt="a",
            results_root=self.store.storage.uri,
            owner="owner",
        )
        tables: list[pa.Table] = []
        tardy: dict[str, int] = {}
        for lane in range(lanes):
            for kind, body in run_here(work, lane):
                if kind == "result":
                    table = self.store.storage.read_table(body["name"])
                    tables.append(table.drop_columns(["batch"]))
                elif kind == "late":
                    for name, count in body.items():
                        tardy[name] = tardy.get(name, 0) + count
                else:
                    assert kind == "lane"
        return tables, tardy

    def _check(
        self,
        results: list[pa.Table],
        tardy: dict[str, int],
        turn: Turn,
        program: Program,
        step: Step,
    ) -> None:
        actual = []
        for table in results:
            times = table.column("c1").cast(pa.int64())
            table = table.set_column(table.column_names.index("c1"), "c1", times)
            actual += [tuple(record.values()) for record in table.to_pylist()]
        plan = program.plan
        expected = [
            row
            for q in plan.queries
            for row in brute_force(q, self.rows, step)
            if row[2] - q.window.range >= plan.complete_from[q.id]
        ]
        assert sorted(actual, key=str) == sorted(expected, key=str)
        pairs = {q.id: _late_pairs(q, turn.rows, step.before) for q in plan.queries}
        assert tardy == {name: count for name, count in pairs.items() if count}


def _late_pairs(query: Query, rows: list[Row], before: int) -> int:
    """(row, window) pairs of a step whose window is closed, by brute force."""
    window = query.window
    return sum(
        (end - window.end_residue) % window.slide == 0
        for time, _, value in rows
        if query.predicate is None or (value is not None and value % 2 == 1)
        for end in range(time + 1, min(before, time + window.range) + 1)
    )


def run(
    cases: list[tuple[Window, Expression | None]], turns: list[Turn], lanes: list[bool]
) -> None:
    queries = [query(number, *case) for number, case in enumerate(cases)]
    with tempfile.TemporaryDirectory() as folder, small():
        steps = Steps(Path(folder))
        for number, turn in enumerate(turns):
            steps.step(turn, queries[: turn.queries], lanes[number % len(lanes)])


@settings(max_examples=60, deadline=None)
@given(CASES, TURNS)
def test_on_the_driver(cases: list[tuple[Window, Expression | None]], turns: list[Turn]) -> None:
    run(cases, turns, [False])


@settings(max_examples=40, deadline=None)
@given(CASES, TURNS)
def test_in_lanes_whose_number_changes(
    cases: list[tuple[Window, Expression | None]], turns: list[Turn]
) -> None:
    run(cases, turns, [True])


@pytest.mark.parametrize("lanes", [False, True])
def test_rows_before_1970_gaps_and_windows_that_end_at_the_watermark(lanes: bool) -> None:
    """The watermark stops at ends of windows, jumps over an empty stretch, and goes on; rows come for the first
    moment that is still open, and for the last one that is not."""
    cases = [(Window(10, 5), None), (Window(7, 7, -3), ODD), (Window(40, 10), None)]
    rows: list[list[Row]] = [
        [(-61, "a", 1), (-60, None, 3), (-1, "b", None), (0, "a", 1), (9, "a", 5)],
        [(9, "b", 1), (10, "a", 2), (4, None, 3), (5000, "a", 1), (-3000, "b", 1)],
        [(4999, None, 1), (5000, "b", 3), (5001, "a", 1)],
        [(5040, "a", 1), (5039, "a", 3)],
    ]
    turns = [
        Turn(new, advance, queries, number + 1)
        for number, (new, advance, queries) in enumerate(zip(rows, (10, 0, 5000, 40), (1, 3, 3, 3)))
    ]
    run(cases, [*turns, Turn([], 60, 3, 2)], [lanes])


def test_every_unit_is_on_one_lane() -> None:
    queries = [query(0, Window(20, 5), None), query(1, Window(7, 3), ODD)]
    plan = next_plan(_NoPlans(), STREAM, queries, None)  # type: ignore[arg-type]
    program = compile_program(plan)
    for lanes in (1, 3, 200):
        placement = placed(program, (1.0,) * lanes)
        units = [
            (group, bucket)
            for shares in placement.shares
            for share in shares
            for group in share.groups
            for bucket in share.buckets
        ]
        everything = [(g, b) for g in range(len(program.groups)) for b in range(BUCKETS)]
        assert sorted(units) == everything
        assert len(placement.costs) == lanes


@pytest.mark.parametrize("weights", [(1, 1), (2, 1, 1), (1,) * 7])
def test_the_buckets_of_a_lane_are_neighbours(weights: tuple[float, ...]) -> None:
    """So that it need not read the row groups of other lanes."""
    queries = [query(0, Window(20, 5), None), query(1, Window(7, 3), ODD)]
    plan = next_plan(_NoPlans(), STREAM, queries, None)  # type: ignore[arg-type]
    for shares in placed(compile_program(plan), weights).shares:
        for share in shares:
            assert share.buckets == tuple(range(share.buckets[0], share.buckets[-1] + 1))


def test_a_lane_of_twice_the_weight_has_twice_the_work() -> None:
    queries = [query(0, Window(20, 5), None), query(1, Window(7, 3), ODD)]
    plan = next_plan(_NoPlans(), STREAM, queries, None)  # type: ignore[arg-type]
    placement = placed(compile_program(plan), [2, 1, 1])
    heavy, *light = placement.costs
    assert light == pytest.approx([heavy / 2] * 2, rel=0.05)
    whole = sum(placed(compile_program(plan), [1]).costs)
    assert sum(placement.costs) == pytest.approx(whole)


class _NoPlans:
    def plan_versions(self) -> list[int]:
        return []


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
def test_a_portion_of_a_lane_keeps_to_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lanes: int
) -> None:
    """Whatever part of the buckets a lane has: row groups hold few buckets each, of this lane or of others, too."""
    monkeypatch.setattr(tiles, "GROUP_ROWS", 100)
    steps = Steps(tmp_path)
    plan = next_plan(steps.log, STREAM, [query(0, Window(1000, 1000), None)], None)
    steps.log.put_plan(plan)
    program = compile_program(plan)
    rows: list[Row] = [(number % 900, f"k{number}", 1) for number in range(6400)]
    (entry,) = steps._written(plan.nodes[0], Turn(rows, 0, 1, lanes), plan.version)
    held = StateFile(steps.log.storage, entry)
    size = bytes_in_memory(steps.log, entry)
    bound = 400 * size
    for number in range(lanes):
        work = LaneWork(
            checkpoint=steps.log.storage.uri,
            stream="s",
            plan_version=plan.version,
            files=[entry],
            new_files=[],
            before=999,
            now=1000,
            ansi=False,
            shares=placed(program, [1] * lanes).shares,
            cap_bytes=bound,
            step="0",
            batch=0,
            attempt="a",
            results_root="",
            owner="",
        )
        (share,) = work.shares[number]
        spans = due_spans(program, 999, 1000)
        portions = list(_Lane(work, number)._portions(spans, share.buckets))
        assert sum(int(portion.sum()) for portion in portions) == len(share.buckets)
        assert len(portions) <= -(-6400 // lanes // 250), "no more than needed"
        for portion in portions:
            extract = Extract(spans[plan.nodes[0].id], portion)
            (count,) = [sum(t.num_rows for t in held.read(extract, ["n"]))]
            assert count * size <= bound * 1.2, "buckets are not quite of one size"
