"""Aggregation joins drawn at random, their rows as entries, and what DuckDB gives over the windows' contents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from weft.algebra.aggregate import Aggregate, result_type
from weft.algebra.joinagg.query import (
    AggregationInput,
    AggregationJoin,
    Attribute,
    JoinedAggregate,
)
from weft.algebra.joinagg.windows import InputWindow
from weft.algebra.partial import Partial
from weft.algebra.predicates.canonical import predicate_set
from weft.algebra.query import OutputColumn
from weft.algebra.scalar import Call, Expression, Ref
from weft.kernel.columns.column import Column, column
from weft.kernel.joinagg.entries import Entries, entries_of

STEP = 10
FUNCTIONS = ("count", "sum", "avg", "min", "max", "stddev_pop")
INSTANTS = list(range(STEP, 140, STEP))
ORACLE = duckdb.connect(config={"threads": 1})
SCHEMA = pa.schema(
    [
        ("at", pa.int64()),
        ("t", pa.int32()),
        ("j", pa.int32()),
        ("g", pa.string()),
        ("a", pa.int64()),
    ]
)
Row = tuple[int, int | None, str | None, int | None]
"""Event time, join attribute, grouping attribute, aggregation attribute."""


def aggregate(function: str) -> Aggregate:
    argument = Expression("cast(`a` AS bigint)", "bigint", ("a",))
    type_ = result_type(function, "bigint")
    assert type_ is not None
    return Aggregate(function, (argument,), type_)


PRODUCT = Call("*", (Ref("0.j", "int"), Ref("1.j", "int")), "int")
COMPUTED = {
    "sum": JoinedAggregate(
        Aggregate("sum", (Expression("s0.j * s1.j", "int", ("0.j", "1.j")),), "bigint"),
        None,
        (PRODUCT,),
    ),
    "max": JoinedAggregate(
        Aggregate("count", (Expression("s1.g", "string", ("1.g",)),), "bigint", distinct=True),
        None,
        (Ref("1.g", "string"),),
    ),
}
"""Aggregates that are computed of joined rows, by the functions in whose place they stand where no input is drawn."""


def rows_of(most: int) -> st.SearchStrategy[list[Row]]:
    time = st.integers(0, 59)
    join = st.one_of(st.none(), st.integers(0, 2))
    group = st.one_of(st.none(), st.sampled_from("xy"))
    value = st.one_of(st.none(), st.integers(-3, 3), st.just(2**62))
    return st.lists(st.tuples(time, join, group, value), max_size=most)


WINDOWS = st.one_of(
    st.builds(InputWindow, st.just("sliding"), st.sampled_from([5, 10, 15, 30, 70])),
    st.builds(InputWindow, st.just("tumbling"), st.sampled_from([10, 20, 25])),
    st.just(InputWindow("landmark")),
    st.none(),
)


def query_of(
    windows: list[InputWindow | None], slots: list[int | None], functions: list[str], keys: set[int]
) -> AggregationJoin:
    """Inputs in a chain of equal join attributes, grouped by those whose slots are in `keys`."""
    attributes = tuple(
        Attribute(name, Expression(f"`{name}`", type_, (name,)))
        for name, type_ in (("j", "int"), ("g", "string"))
    )
    inputs = tuple(
        AggregationInput(f"s{i}", f"s{i}", w, None, attributes) for i, w in enumerate(windows)
    )
    equal = [
        Call("=", (Ref(f"{slot}.j", "int"), Ref(f"{slot + 1}.j", "int")), "boolean")
        for slot in range(len(windows) - 1)
    ]
    condition = equal[0] if len(equal) == 1 else Call("and", tuple(equal), "boolean")
    aggregates = tuple(
        JoinedAggregate(aggregate(f), slot)
        if slot is not None
        else COMPUTED.get(f, JoinedAggregate(Aggregate("count", (), "bigint"), None))
        for slot, f in zip(slots, functions, strict=True)
    )
    return AggregationJoin(
        "q@1",
        "q",
        "",
        inputs,
        predicate_set(condition),
        tuple(Ref(f"{slot}.g", "string") for slot in sorted(keys)),
        aggregates,
        None,
        (
            OutputColumn("at", "timestamp", Ref("at", "timestamp")),
            *(OutputColumn(f"g{i}", "string", Ref(f"k{i}", "string")) for i in range(len(keys))),
            *(
                OutputColumn(f"v{i}", a.aggregate.type, Ref(f"a{i}", a.aggregate.type))
                for i, a in enumerate(aggregates)
            ),
        ),
        STEP,
    )


def with_changes(query: AggregationJoin) -> AggregationJoin:
    removed = OutputColumn("removed", "boolean", Ref("removed", "boolean"))
    return replace(query, columns=(*query.columns, removed), changes=True)


def lifted_rows(rows: list[Row], partials: list[Partial]) -> dict[str, pa.Array]:
    """Rows lifted one by one, as Spark lifts them into state files."""
    values = [row[3] for row in rows]
    lifted: dict[str, pa.Array] = {}
    for partial in partials:
        if partial.combine.name == "add":
            lifted[partial.name] = pa.array([int(v is not None) for v in values], pa.int64())
        elif partial.combine.name == "add_wide":
            halves = [{"high": (v or 0) >> 32, "low": (v or 0) & 0xFFFFFFFF} for v in values]
            lifted[partial.name] = pa.array(
                halves, pa.struct([("high", pa.int64()), ("low", pa.int64())])
            )
        elif partial.combine.name == "moments":
            parts = [
                {"n": int(v is not None), "mean": v and float(v), "m2": None if v is None else 0.0}
                for v in values
            ]
            fields = [("n", pa.int64()), ("mean", pa.float64()), ("m2", pa.float64())]
            lifted[partial.name] = pa.array(parts, pa.struct(fields))
        else:
            lifted[partial.name] = pa.array(values, pa.int64())
    return lifted


def strings(values: pa.Array) -> Column:
    """A column of strings; tests of coded ones put another function here."""
    return column(values)


def entries(rows: list[Row], window: InputWindow | None, partials: list[Partial]) -> Entries:
    """Rows as entries, with the instants at which they count."""
    lifted = lifted_rows(rows, partials)
    first, last = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    if window is not None:
        pane = window.pane(STEP)
        for place, row in enumerate(rows):
            first[place], last[place] = window.instants((row[0] // pane + 1) * pane, STEP)
    columns = {
        "j": column(pa.array([row[1] for row in rows], pa.int32())),
        "g": strings(pa.array([row[2] for row in rows], pa.string())),
    }
    table = pa.table(lifted or {"": pa.nulls(len(rows))})
    return entries_of(table, first, last, columns, np.ones(len(rows), np.int64), partials)


def inside(rows: list[Row], window: InputWindow | None, at: int) -> list[Row]:
    """The window's contents, straight from its definition."""
    if window is None:
        return rows
    if window.kind == "landmark":
        return [row for row in rows if row[0] < at]
    if window.kind == "tumbling":
        return [row for row in rows if (at - 1) // window.length * window.length <= row[0] < at]
    return [row for row in rows if at - window.length <= row[0] < at]


def expected(query: AggregationJoin, streams: list[list[Row]]) -> dict[int, Counter[Any]]:
    """What DuckDB gives over the contents of all windows, at every instant."""
    ORACLE.execute("BEGIN")
    for slot, rows in enumerate(streams):
        contents = [
            (at, *row) for at in INSTANTS for row in inside(rows, query.inputs[slot].window, at)
        ]
        columns = list(zip(*contents, strict=True)) or [()] * 5
        table = pa.table(dict(zip(SCHEMA.names, map(list, columns), strict=True)), SCHEMA)
        ORACLE.register(f"s{slot}", table)
    groups = [f"s{key.name.split('.')[0]}.g" for key in query.keys if isinstance(key, Ref)]
    selected = list(map(_selected, query.aggregates))
    joins = "".join(
        f" JOIN s{slot} ON s{slot - 1}.j = s{slot}.j AND s0.at = s{slot}.at"
        for slot in range(1, len(streams))
    )
    outer = "JOIN" if groups else "LEFT JOIN"
    sql = (
        f"SELECT {', '.join(['i.at', *groups, *selected])} "
        f"FROM (SELECT unnest({INSTANTS}) AS at) i {outer} (s0{joins}) ON i.at = s0.at "
        f"GROUP BY {', '.join(['i.at', *groups])}"
    )
    wanted: dict[int, Counter[Any]] = {at: Counter() for at in INSTANTS}
    for at, *row in ORACLE.execute(sql).fetchall():
        wanted[at][tuple(map(rounded, row))] += 1
    ORACLE.execute("ROLLBACK")
    return wanted


def _selected(entry: JoinedAggregate) -> str:
    function = entry.aggregate.function
    if entry.is_computed:
        distinct = "DISTINCT " if entry.aggregate.distinct else ""
        return f"{function}({distinct}{entry.aggregate.arguments[0].sql})"
    return "count(s0.at)" if entry.slot is None else f"{function}(s{entry.slot}.a)"


def rounded(value: Any) -> Any:
    return float(f"{value:.9g}") if isinstance(value, float) else value


@st.composite
def cases(
    draw: st.DrawFn, inputs: Sequence[int] = (2, 2, 3)
) -> tuple[AggregationJoin, list[list[Row]]]:
    """A query of so many inputs, and their rows."""
    count = draw(st.sampled_from(inputs))
    windows = draw(st.lists(WINDOWS, min_size=count, max_size=count))
    if all(window is None for window in windows):
        windows[0] = InputWindow("sliding", 30)
    slot = st.one_of(st.none(), st.integers(0, count - 1))
    slots = draw(st.lists(slot, min_size=1, max_size=3))
    functions = [draw(st.sampled_from(FUNCTIONS)) for _ in slots]
    keys = draw(st.sets(st.integers(0, count - 1)))
    streams = [draw(rows_of(12 if count < 4 else 7)) for _ in range(count)]
    return query_of(windows, slots, functions, keys), streams
