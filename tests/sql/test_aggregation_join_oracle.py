"""Aggregation joins from their SQL to result rows, against DuckDB with the windows written as conditions.

The text is bound, its expressions are evaluated on rows, and `kernel/joinagg` computes the result at every instant, for early and
late plans. DuckDB runs the same text once for each instant, with `ts >= … AND ts < …` in place of the brackets.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sql.joinagg_rows import ORACLE, SECOND, groups_at, load, shown, sides_of
from tests.sql.support import FakeAnalyzer

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.query import Field, StreamSchema
from weft.kernel.joinagg.evaluation import Side
from weft.sql import bind

COLUMNS = {"ts": "timestamp", "j": "int", "g": "string", "a": "bigint", "d": "double"}
OTHER = {**COLUMNS, "j": "bigint", "a": "int"}
STREAMS = {
    name: StreamSchema(name, tuple(Field(*c) for c in columns.items()), "ts", 0)
    for name, columns in (("s", COLUMNS), ("r", OTHER))
}
TABLES = {"p": tuple(Field(*c) for c in COLUMNS.items())}
TYPES = {"s": COLUMNS, "r": OTHER, "p": COLUMNS}
Row = tuple[int, int | None, str | None, int | None, float | None]

WINDOWS = {
    "[WINDOW 30 SECONDS]": "{0}.ts >= {1} - 30 AND {0}.ts < {1}",
    "[WINDOW 15 SECONDS SLIDING]": "{0}.ts >= {1} - 15 AND {0}.ts < {1}",
    "[WINDOW TUMBLING 20 SECONDS]": "{0}.ts >= ({1} - 1) // 20 * 20 AND {0}.ts < {1}",
    "[WINDOW UNTIL NOW]": "{0}.ts < {1}",
}
"""Each with the same as a condition, at a second `{1}`."""
SELECTIONS = (
    "{0}.a > 0",
    "{0}.g = 'x' OR {0}.a IS NULL",
    "NOT ({0}.a BETWEEN 0 AND 1)",
    "coalesce({0}.g, 'y') <> 'x'",
    "{0}.d < 2.5",
    "{0}.g IN ('x', 'z')",
)
JOINS = (
    "{0}.j = {1}.j",
    "{0}.j = {1}.j AND {0}.ts <= {1}.ts",
    "{0}.j + 1 = {1}.a",
    "{0}.g = {1}.g AND {0}.a <= 2 * {1}.a",
    "{0}.a < {1}.a",
    "{0}.d = {1}.a",
    "{0}.j = {1}.j AND ({0}.a > 0 OR {1}.g = 'y')",
    "upper({0}.g) = upper({1}.g)",
)
KEYS = (
    "{0}.g",
    "{0}.j",
    "{0}.d",
    "{0}.a + 1",
    "{0}.a - {1}.a",
    "{0}.d * {1}.a",
    "coalesce({0}.g, {1}.g)",
    "upper({0}.g)",
)
AGGREGATES = (
    "count(*)",
    "count({0}.a)",
    "sum({0}.a)",
    "avg({0}.a)",
    "min({0}.a)",
    "max({0}.g)",
    "sum({0}.a + 1)",
    "sum({0}.d)",
    "stddev_pop({0}.a)",
    "count(*) FILTER (WHERE {0}.a > 0)",
    "sum({0}.a) FILTER (WHERE {0}.g = 'x')",
    "count({0}.a, {0}.g)",
    "count({0}.*)",
    "sum({0}.a) + count(*)",
    "count(DISTINCT {0}.a)",
    "count(DISTINCT {0}.g) FILTER (WHERE {0}.a > 0)",
    "count(DISTINCT {0}.d)",
    # over several inputs
    "count(DISTINCT {0}.a + {1}.a)",
    "sum({0}.a * {1}.a)",
    "avg({0}.a - {1}.d)",
    "min({0}.a + {1}.a)",
    "max(coalesce({0}.g, {1}.g))",
    "stddev_pop({0}.a - {1}.a)",
    "count(CASE WHEN {0}.a > {1}.a THEN 1 END)",
    "count(*) FILTER (WHERE {0}.a < {1}.a)",
    "sum({0}.a) FILTER (WHERE {0}.g = {1}.g)",
    "sum({0}.a + {1}.j) FILTER (WHERE {0}.a > 0 OR {1}.a IS NULL)",
)
HAVINGS = ("", "count(*) > 1", "sum({0}.a) > 0", "max({0}.a) IS NULL OR {0}.g = 'x'")


@dataclass(frozen=True)
class Case:
    """A query in both dialects, and the rows of its relations."""

    sql: str
    relations: tuple[str, ...]
    windows: tuple[str | None, ...]
    items: tuple[str, ...]
    where: str
    group: tuple[str, ...]
    having: str
    rows: dict[str, list[Row]]

    def oracle(self, at: int) -> str:
        """The SQL over the contents of the windows at a second."""
        inside = [
            WINDOWS[window].format(f"x{slot}", at).replace(".ts", ".second")
            for slot, window in enumerate(self.windows)
            if window is not None
        ]
        from_ = ", ".join(f"{relation} x{slot}" for slot, relation in enumerate(self.relations))
        sql = f"SELECT {', '.join(self.items)} FROM {from_} WHERE ({self.where}) AND {' AND '.join(inside)}"
        sql += f" GROUP BY {', '.join(self.group)}" if self.group else ""
        sql += f" HAVING {self.having}" if self.having else ""
        for slot in range(len(self.relations)):
            sql = sql.replace(f"count(x{slot}.*)", "count(*)")
            both = f"count(x{slot}.a, x{slot}.g)"
            sql = sql.replace(both, f"count(CASE WHEN x{slot}.g IS NOT NULL THEN x{slot}.a END)")
        return sql


def rows_of(most: int) -> st.SearchStrategy[list[Row]]:
    nullable = [st.integers(0, 2), st.sampled_from("xy"), st.integers(-2, 3)]
    columns = [st.one_of(st.none(), values) for values in nullable]
    floats = st.sampled_from([None, -0.0, 1.0, 2.5])
    return st.lists(st.tuples(st.integers(0, 69), *columns, floats), max_size=most)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    count = draw(st.sampled_from([2, 2, 2, 3, 5]))
    relations = [draw(st.sampled_from("srp")) for _ in range(count)]
    relations[draw(st.integers(0, count - 1))] = draw(st.sampled_from("sr"))
    windows = [None if r == "p" else draw(st.sampled_from(sorted(WINDOWS))) for r in relations]
    slot = st.integers(0, count - 1)

    def one(choices: tuple[str, ...]) -> str:
        first = draw(slot)
        other = (first + 1) % count
        return draw(st.sampled_from(choices)).format(f"x{first}", f"x{other}")

    joins = [draw(st.sampled_from(JOINS)).format(f"x{i - 1}", f"x{i}") for i in range(1, count)]
    where = [*joins, *(f"({one(SELECTIONS)})" for _ in range(draw(st.integers(0, 3))))]
    group = list(dict.fromkeys(one(KEYS) for _ in range(draw(st.integers(0, 2)))))
    aggregates = list(dict.fromkeys(one(AGGREGATES) for _ in range(draw(st.integers(1, 3)))))
    items = [f"{item} AS c{i}" for i, item in enumerate([*group, *aggregates])]
    having = one(HAVINGS)
    keyed = any(key in having for key in group if key.endswith(".g"))
    having = having if ".g" not in having or keyed else ""
    from_ = ", ".join(
        f"{relation} x{i}" + (f" {window}" if window else "")
        for i, (relation, window) in enumerate(zip(relations, windows, strict=True))
    )
    sql = f"SELECT {', '.join(items)} FROM {from_} WHERE {' AND '.join(where)}"
    sql += f" GROUP BY {', '.join(group)}" if group else ""
    sql += f" HAVING {having}" if having else ""
    most = 12 if count < 4 else 6
    return Case(
        f"{sql} EVERY 10 SECONDS",
        tuple(relations),
        tuple(windows),
        tuple(items),
        " AND ".join(where),
        tuple(group),
        having,
        {name: draw(rows_of(most)) for name in TYPES},
    )


def results(
    query: AggregationJoin, sides: list[Side], instants: list[int]
) -> dict[int, Counter[Any]]:
    found: dict[int, Counter[Any]] = {second: Counter() for second in instants}
    for instant, *row in shown(query, groups_at(query, sides, instants)):
        found[int(instant.timestamp())][tuple(map(rounded, row))] += 1
    return found


def rounded(value: Any) -> Any:
    return float(f"{value:.9g}") + 0.0 if isinstance(value, float) else value


def expected(case: Case, instants: list[int]) -> dict[int, Counter[Any]]:
    wanted: dict[int, Counter[Any]] = {at: Counter() for at in instants}
    parts = [f"SELECT {at} AS instant, * FROM ({case.oracle(at)})" for at in instants]
    for at, *row in ORACLE.execute(" UNION ALL ".join(parts)).fetchall():
        wanted[at][tuple(map(rounded, row))] += 1
    return wanted


INSTANTS = list(range(10, 110, 10))


@given(cases(), st.data())
@settings(max_examples=40)
def test_the_bound_query_gives_what_duckdb_gives_at_every_instant(case: Case, data: Any) -> None:
    for name, rows in case.rows.items():
        load(name, TYPES[name], rows)
    query = bind(
        "q", case.sql, STREAMS, FakeAnalyzer(), query_id="q@1", tables=TABLES, time_zone="UTC"
    )
    assert isinstance(query, AggregationJoin), query
    assert query.step == 10 * SECOND
    wanted, sides = expected(case, INSTANTS), sides_of(query)
    plans = [(False,) * len(query.inputs), (True,) * len(query.inputs)]
    mixed = itertools.product([False, True], repeat=len(query.inputs))
    for early in (*plans, data.draw(st.sampled_from(list(mixed)))):
        planned = [replace(side, early=is_early) for side, is_early in zip(sides, early)]
        assert results(query, planned, INSTANTS) == wanted, early


def test_zeros_of_either_sign_are_one_key_and_one_value() -> None:
    """Also where a product makes them after the join: 0.0 * -1 is -0.0."""
    rows: list[Row] = [(1, 1, "x", 1, 0.0), (2, 1, "x", -1, -0.0), (3, 1, "x", -1, 0.0)]
    for name in TYPES:
        load(name, TYPES[name], rows)
    for key in ("x0.d", "x0.d * x1.a"):
        sql = f"""SELECT {key} AS k, count(*) AS n, count(DISTINCT x0.d) AS m, count(DISTINCT x0.d * x1.a) AS p
            FROM s x0 [WINDOW 30 SECONDS], p x1 WHERE x0.j = x1.j GROUP BY {key} EVERY 10 SECONDS"""
        query = bind(
            "q", sql, STREAMS, FakeAnalyzer(), query_id="q@1", tables=TABLES, time_zone="UTC"
        )
        assert isinstance(query, AggregationJoin), query
        for early in itertools.product([False, True], repeat=2):
            sides = [replace(s, early=e) for s, e in zip(sides_of(query), early, strict=True)]
            assert results(query, sides, [10]) == {10: Counter({(0.0, 9, 1, 1): 1})}
