"""Bounded tables: plain group-bys for any tree and allocation, and operations counted as row by row."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.errors import WeftError
from weft.experiments.memory.bounded_table import Measures, Table, bounded, colliding
from weft.experiments.memory.node_codes import encode
from weft.experiments.memory.tree_run import TreeRun, run_tree
from weft.optimizer.groupby.trees.aggregate_tree import AggregateTree, Branch, GroupBySet
from weft.optimizer.groupby.trees.greedy_tree import changes

ATTRIBUTES = ("a", "b", "c", "d")
TYPES = {"a": pa.int64(), "b": pa.string(), "c": pa.float64(), "d": pa.timestamp("us", "UTC")}

rows = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.none() | st.sampled_from(["x", "y", ""]),
        st.none() | st.sampled_from([0.0, -0.0, 1.5, float("nan")]),
        st.none() | st.integers(0, 2),
        st.integers(-100, 100),
    ),
    max_size=60,
)
tables = st.sampled_from((bounded, colliding))


@st.composite
def trees(draw: st.DrawFn) -> AggregateTree:
    queries = draw(st.lists(st.frozensets(st.sampled_from(ATTRIBUTES)), min_size=1, max_size=4))
    tree = AggregateTree.flat(queries)
    for _ in range(draw(st.integers(0, 4))):
        options = list(changes(tree))
        if options:
            tree = draw(st.sampled_from(options))
    return tree


def made(data: list[tuple[Any, ...]]) -> tuple[pa.Table, Measures]:
    columns = [list(column) for column in zip(*data)] or [[] for _ in range(5)]
    table = pa.table(
        {name: pa.array(column, TYPES[name]) for name, column in zip(ATTRIBUTES, columns)}
        | {"v": pa.array(columns[4], pa.int64())}
    )
    values = np.array(columns[4], np.int64)
    wanted = {
        "n": ("count", None),
        "s": ("sum", values),
        "low": ("min", values),
        "high": ("max", values.astype(np.float64)),
    }
    return table, Measures.of(len(data), wanted)


def run(
    tree: AggregateTree, held: dict[GroupBySet, float], data: list[tuple[Any, ...]], table: Table
) -> tuple[TreeRun, pa.Table]:
    given_, measures = made(data)
    return run_tree(tree, held, encode(given_, ATTRIBUTES), measures, table), given_


def normal(value: Any) -> Any:
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    return value


@settings(max_examples=60)
@given(data=rows, tree=trees(), table=tables, draw=st.data())
def test_results_are_those_of_a_plain_group_by(
    data: list[tuple[Any, ...]], tree: AggregateTree, table: Table, draw: st.DataObject
) -> None:
    held = {node: float(draw.draw(st.integers(0, 8))) for node in tree.intermediates()}
    tree_run, given_ = run(tree, held, data, table)
    attributes = encode(given_, ATTRIBUTES)
    assert set(tree_run.results) == set(tree.queries())
    for query, grouped in tree_run.results.items():
        keys = sorted(query)
        columns = [attributes[name].decode(grouped.keys[name]).to_pylist() for name in keys]
        measures = [grouped.measures[name].tolist() for name in ("n", "s", "low", "high")]
        ours = sorted((tuple(map(normal, row)) for row in zip(*columns, *measures)), key=repr)
        # The table has time zones, which DuckDB would show in its own; numbers are the same groups.
        plain = given_.set_column(3, "d", given_["d"].cast(pa.int64()))
        if plain.num_rows == 0:
            assert ours == []
            continue
        listed = ", ".join(keys)
        asked = "count(*), sum(v)::BIGINT, min(v), max(v)::DOUBLE"
        sql = f"SELECT {listed + ', ' if keys else ''}{asked} FROM plain"
        expected = duckdb.sql(sql + (f" GROUP BY {listed}" if keys else "")).fetchall()
        if "d" in keys:
            position = keys.index("d")
            ours = [
                (
                    *row[:position],
                    None if row[position] is None else round(row[position].timestamp() * 1e6),
                    *row[position + 1 :],
                )
                for row in ours
            ]
        assert sorted(ours, key=repr) == sorted(
            (tuple(map(normal, row)) for row in expected), key=repr
        )


def row_by_row(
    tree: AggregateTree, held: dict[GroupBySet, float], data: list[tuple[Any, ...]]
) -> tuple[int, int]:
    """The paper's execution, written down: every eviction goes down at once."""
    position_of = {name: number for number, name in enumerate(ATTRIBUTES)}
    content: dict[GroupBySet, OrderedDict[Any, None]] = {
        b.node: OrderedDict() for _, b in tree.walk()
    }
    counted = [0, 0]

    def insert(branch: Branch, row: tuple[Any, ...], phase: int) -> None:
        counted[phase] += 1
        key = tuple(normal(row[position_of[name]]) for name in sorted(branch.node))
        entries = content[branch.node]
        capacity = float("inf") if branch.asked else held[branch.node]
        if key in entries:
            entries.move_to_end(key)
            return
        if capacity < 1:
            evict(branch, row, phase)
            return
        if len(entries) >= capacity:
            old, _ = entries.popitem(last=False)
            evict(branch, rebuilt(branch, old), phase)
        entries[key] = None

    def rebuilt(branch: Branch, key: Any) -> tuple[Any, ...]:
        values = dict(zip(sorted(branch.node), key))
        return tuple(values.get(name) for name in ATTRIBUTES)

    def evict(branch: Branch, row: tuple[Any, ...], phase: int) -> None:
        for child in branch.children:
            insert(child, row, phase)

    for row in data:
        for child in tree.children:
            insert(child, row, 0)
    for _, branch in tree.walk():
        for key in list(content[branch.node]):
            evict(branch, rebuilt(branch, key), 1)
    return counted[0], counted[1]


@settings(max_examples=80)
@given(data=rows, tree=trees(), draw=st.data())
def test_operations_are_those_of_the_paper_row_by_row(
    data: list[tuple[Any, ...]], tree: AggregateTree, draw: st.DataObject
) -> None:
    held = {node: float(draw.draw(st.integers(0, 8))) for node in tree.intermediates()}
    tree_run, _ = run(tree, held, data, bounded)
    assert (tree_run.during, tree_run.at_end) == row_by_row(tree, held, data)


def test_a_table_of_colliding_buckets_evicts_any_other_group() -> None:
    tree = AggregateTree([Branch(frozenset("ab"), False, [Branch(frozenset("a"), True)])])
    data = [(1, "x", 0.0, 0, 1), (2, "x", 0.0, 0, 1), (1, "x", 0.0, 0, 1), (1, "x", 0.0, 0, 1)]
    tree_run, _ = run(tree, {frozenset("ab"): 1.0}, data, colliding)
    assert (tree_run.during, tree_run.at_end) == (4 + 2, 1)
    assert tree_run.operations[frozenset("ab")].evicted == 2


def test_entries_are_rounded_down_and_never_negative() -> None:
    tree = AggregateTree([Branch(frozenset("ab"), False, [Branch(frozenset("a"), True)])])
    data = [(1, "x", 0.0, 0, 1)] * 3
    assert run(tree, {frozenset("ab"): 0.9}, data, bounded)[0].during == 6
    with pytest.raises(WeftError):
        run(tree, {frozenset("ab"): -1.0}, data, bounded)


def test_what_cannot_be_summed_or_grouped_is_refused() -> None:
    with pytest.raises(WeftError, match="64 bits"):
        Measures.of(2, {"s": ("sum", np.array([2**62, 2**62]))})
    with pytest.raises(WeftError, match="median"):
        Measures.of(1, {"s": ("median", np.array([1]))})
    with pytest.raises(WeftError, match="3 values for 2 rows"):
        Measures.of(2, {"s": ("sum", np.array([1, 2, 3]))})
    nested = pa.table({"a": pa.array([[1]])})
    with pytest.raises(WeftError, match="nested"):
        encode(nested, ["a"])
    with pytest.raises(WeftError, match="'z' is not a column"):
        encode(nested, ["z"])
