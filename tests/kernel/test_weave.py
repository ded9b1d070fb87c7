"""The kernel on fragments of random rows gives what the rows themselves give."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.algebra.aggregate import Aggregate, lift
from weft.algebra.plan import Node, SharedPlan, Sharing
from weft.algebra.query import Field, OutputColumn, Query, StreamSchema
from weft.algebra.scalar import Call, Expression, Literal, Ref
from weft.algebra.window import Window
from weft.kernel.fragments.coalesce import coalesced
from weft.kernel.fragments.state import EMPTY, Encoders, NodeState, load
from weft.kernel.windows import positions
from weft.kernel.windows.intercede import pool_fragments
from weft.kernel.windows.program import Program, compile_program
from weft.kernel.windows.weave import Step, Woven, weave
from weft.optimizer.gtweave import share
from weft.optimizer.weaving import Parts
from weft.runtime.planning.versions import ALWAYS

STREAM = StreamSchema("s", (Field("ts", "timestamp"), Field("k", "string")), "ts", 0)
KEY = Expression("`k`", "string", ("k",))
VALUE = Expression("`v`", "bigint", ("v",))
COUNT = Aggregate("count", (), "bigint")
SUM = Aggregate("sum", (VALUE,), "bigint")
LEAST = Aggregate("min", (VALUE,), "bigint")
DISTINCT = Aggregate("count", (VALUE,), "bigint", distinct=True)
ODD = Expression("(`v` % 2) = 1", "boolean", ("v",))

Row = tuple[int, str | None, int | None]
ROWS = st.lists(
    st.tuples(
        st.integers(0, 80),
        st.sampled_from(["a", "b", None]),
        st.none() | st.integers(-3, 3) | st.sampled_from([2**62, -(2**62)]),
    ),
    max_size=40,
)


def query(number: int, window: Window, predicate: Expression | None) -> Query:
    aggregates = (COUNT, SUM, LEAST, DISTINCT)
    columns = [OutputColumn("k", "string", Ref("k0", "string"))]
    columns.append(OutputColumn("end", "timestamp", Ref("window_end", "timestamp")))
    columns += [OutputColumn(f"a{i}", "bigint", Ref(f"a{i}", "bigint")) for i in range(4)]
    return Query(
        f"q@{number}", "q", "", "s", window, (KEY,), predicate, aggregates, None, tuple(columns)
    )


def fragment_table(node: Node, rows: list[Row]) -> pa.Table:
    """Level 1 by hand."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        odd = row[2] is not None and row[2] % 2 == 1
        if node.keeps_all_rows or odd:
            key = (row[1],) if len(node.keys) == 1 else (row[1], row[2])
            signature = int(odd) if node.predicates else 0
            groups[node.fragments.end_of(row[0]), signature, key].append(row)
    columns: dict[str, list[Any]] = defaultdict(list)
    for (end, signature, key), members in groups.items():
        columns["fragment_end"].append(end)
        if node.signature.words:
            columns["s0"].append(signature)
        for index, part in enumerate(key):
            columns[f"k{index}"].append(part)
        columns["n"].append(len(members))
        values = [row[2] for row in members if row[2] is not None]
        for partial in node.partials:
            columns[partial.name].append(_lifted(partial.lift, values, len(members)))
    types = {"fragment_end": pa.int64(), "s0": pa.int64(), "n": pa.int64()}
    types |= {"k0": pa.string(), "k1": pa.int64()}
    return pa.table({name: pa.array(column, types.get(name)) for name, column in columns.items()})


def _lifted(text: str, values: list[int], rows: int) -> Any:
    if text == "count(1)":
        return rows
    if text == "count(`v`)":
        return len(values)
    if text.startswith("min"):
        return min(values, default=None)
    return {
        "high": sum(value >> 32 for value in values),
        "low": sum(value & 0xFFFFFFFF for value in values),
    }


class Drawn:
    """Weave groups as drawn: the part of each query, by its place."""

    sharing = Sharing("drawn")

    def __init__(self, parts: list[int], levels: int) -> None:
        self._parts, self._levels = parts, levels

    def parts(self, queries: Sequence[Query]) -> Parts:
        parts: dict[int, list[Query]] = defaultdict(list)
        for query in queries:
            parts[self._parts[int(query.id[2:]) % len(self._parts)]].append(query)
        return Parts(self._levels, list(parts.values()))

    def tree(self, plan: SharedPlan, readers: Mapping[str, Sequence[Query]]) -> Sequence[Node]:
        return plan.nodes


def states(
    program: Program, portions: list[list[Row]]
) -> tuple[dict[str, NodeState], dict[str, Encoders]]:
    """Every pool's open fragments: each portion of rows is a step."""
    plan = program.plan
    group = plan.nodes[0]
    encoders = {group.base: Encoders(group, group.base)}
    pools: dict[str, NodeState] = {}
    for node in plan.nodes:
        if node.base not in encoders:
            encoders[node.base] = Encoders(node, group.base, encoders[group.base].groups)
        for rows in portions:
            table = fragment_table(node, rows)
            if not table.num_rows:
                continue
            new = load([table], node, encoders[node.base])
            for name, pool in program.pools.items():
                if pool.node == node.id:
                    fragments = pool_fragments(new, pool, encoders[node.base].keys)
                    pools[name] = pools.get(name, EMPTY).merged(fragments)
    return pools, encoders


def brute_force(query: Query, rows: list[Row], step: Step) -> list[tuple[Any, ...]]:
    expected_rows = []
    for end in range(step.before + 1, step.now + 1):
        if (end - query.window.end_residue) % query.window.slide:
            continue
        for key in ("a", "b", None):
            members = [
                row
                for row in rows
                if end - query.window.range <= row[0] < end
                and row[1] == key
                and (query.predicate is None or (row[2] is not None and row[2] % 2 == 1))
            ]
            if members:
                values = [row[2] for row in members if row[2] is not None]
                total = (sum(values) + 2**63) % 2**64 - 2**63 if values else None
                least = min(values, default=None)
                expected_rows.append(
                    (query.id, key, end, len(members), total, least, len(set(values)))
                )
    return expected_rows


@st.composite
def windows(draw: st.DrawFn) -> Window:
    slide = draw(st.integers(1, 15))
    return Window(draw(st.integers(1, 40)), slide, draw(st.integers(1 - slide, slide - 1)))


CASES = st.lists(st.tuples(windows(), st.sampled_from([None, ODD])), min_size=1, max_size=6)


@settings(max_examples=150)
@given(
    CASES,
    st.lists(ROWS, min_size=1, max_size=3),
    st.integers(-5, 60),
    st.integers(1, 70),
    st.sampled_from(["dense", "search", "sparse", "ranks"]),
    st.booleans(),
    st.none() | st.builds(Drawn, st.lists(st.integers(0, 2), min_size=1), st.sampled_from([2, 3])),
)
def test_every_window_of_every_query(
    specs: list[tuple[Window, Expression | None]],
    portions: list[list[Row]],
    before: int,
    length: int,
    search: str,
    merge: bool,
    weaving: Drawn | None,
) -> None:
    queries = [query(i, window, where) for i, (window, where) in enumerate(specs)]
    plan = share(1, STREAM, queries, {q.id: ALWAYS for q in queries}, weaving)
    program = compile_program(plan)
    pools, encoders = states(program, portions)
    if merge:
        pools = {name: coalesced(state) for name, state in pools.items()}
    step = Step(before, before + length, ansi=False)
    with pytest.MonkeyPatch.context() as patch:
        if search == "sparse":
            patch.setattr(positions, "_DENSE", 0)
            patch.setattr(positions, "_ALWAYS_DENSE", 0)
        if search in ("search", "ranks"):
            patch.setattr(positions, "_MOST_CELLS", 0)
        if search == "ranks":
            patch.setattr(positions, "_PACKED_LIMIT", 0)
        woven = weave(program, pools, encoders, step)
    rows = [row for portion in portions for row in portion]
    expected = [row for q in queries for row in brute_force(q, rows, step)]
    actual = [
        tuple(record.values())
        for tables in woven.families.values()
        for table in tables
        for record in _plain(table).to_pylist()
    ]
    assert sorted(actual, key=str) == sorted(expected, key=str)


def _plain(table: pa.Table) -> pa.Table:
    position = table.column_names.index("c1")
    return table.set_column(position, "c1", table.column("c1").cast(pa.int64()))


@given(ROWS)
def test_coalescing_leaves_one_row_for_each_key_end_and_signature(rows: list[Row]) -> None:
    plan = share(1, STREAM, [query(0, Window(20, 5), None)], {"q@0": ALWAYS})
    pools, _ = states(compile_program(plan), [rows, rows])
    state = coalesced(pools.get(plan.nodes[0].id, EMPTY))
    pairs = list(zip(state.keys.tolist(), state.ends.tolist(), strict=True))
    assert len(pairs) == len(set(pairs))
    assert int(state.counts.sum()) == 2 * len(rows)


def test_lifted_partials_are_those_of_the_plan() -> None:
    """The level 1 of this file covers every partial that the plan asks for."""
    for aggregate in (COUNT, SUM, LEAST):
        for partial in lift(aggregate, STREAM.time_micros, None):
            assert _lifted(partial.lift, [1], 1) is not None


def having(least: int) -> Query:
    call = Call(">", (Ref("a0", "bigint"), Literal(least, "bigint")), "boolean")
    return replace(query(0, Window(20, 5), None), having=call)


def woven_with_having(least: int, rows: list[Row], *, ansi: bool) -> Woven:
    plan = share(1, STREAM, [having(least)], {"q@0": ALWAYS})
    program = compile_program(plan)
    pools, encoders = states(program, [rows])
    return weave(program, pools, encoders, Step(0, 100, ansi=ansi))


@given(ROWS, st.integers(0, 6))
def test_having_keeps_the_rows_that_satisfy_it(rows: list[Row], least: int) -> None:
    woven = woven_with_having(least, rows, ansi=False)
    actual = [tuple(row.values()) for table in _tables(woven) for row in _plain(table).to_pylist()]
    everything = brute_force(query(0, Window(20, 5), None), rows, Step(0, 100, ansi=False))
    assert sorted(actual, key=str) == sorted([r for r in everything if r[3] > least], key=str)


def test_a_sum_that_overflows_fails_even_where_having_would_drop_it() -> None:
    """Plain Spark evaluates aggregates before HAVING."""
    rows: list[Row] = [(1, "a", 2**62), (2, "a", 2**62)]
    assert list(woven_with_having(5, rows, ansi=True).failures) == ["q@0"]
    assert not woven_with_having(5, rows, ansi=False).failures


def _tables(woven: Woven) -> list[pa.Table]:
    return [table for tables in woven.families.values() for table in tables]


def test_encoders_that_have_seen_nothing_are_shared_too() -> None:
    """A node's file may be without rows, or loaded after that of another node with the same group."""
    node = share(1, STREAM, [query(0, Window(20, 5), None)], {"q@0": ALWAYS}).nodes[0]
    first = Encoders(node, "g")
    assert not len(first.groups)
    assert Encoders(node, "g", first.groups).groups is first.groups
