"""A small stream with late and out-of-order rows, and queries of every kind of state."""

from __future__ import annotations

import random
from typing import Any

from tests.oracle.expressions import Aggregate, Column, Comparison, Literal, WindowColumn
from tests.oracle.rows import RowWindow
from tests.oracle.sparktypes import BIGINT, DOUBLE, STRING, TIMESTAMP
from tests.oracle.spec import Item, Query, Window

SECOND = 1_000_000
BATCHES = 7
DELAY = 2 * SECOND
START = 1_700_000_000 * SECOND
SCHEMA = {"ts": TIMESTAMP, "k": STRING, "v": BIGINT, "x": DOUBLE}
DDL = "ts timestamp, k string, v bigint, x double"

_BOUNDS = (Item(Column("k"), "k"), Item(WindowColumn("start"), "start"))


def _query(window: Window, where: Comparison | None, *aggregates: Aggregate) -> Query:
    items = tuple(Item(aggregate, f"a{i}") for i, aggregate in enumerate(aggregates))
    return Query(window, _BOUNDS + items, keys=(Column("k"),), where=where)


_V, _X = Column("v"), Column("x")
SPECS: dict[str, Query] = {
    "counts": _query(Window(6 * SECOND, 2 * SECOND), None, Aggregate("count")),
    "sums": _query(
        Window(5 * SECOND, 3 * SECOND), None, Aggregate("sum", (_V,)), Aggregate("avg", (_X,))
    ),
    "extremes": _query(
        Window(8 * SECOND, 4 * SECOND),
        Comparison(">", _V, Literal(3, BIGINT)),
        Aggregate("min", (_X,)),
        Aggregate("max", (_V,)),
    ),
    "distinct": _query(Window(4 * SECOND), None, Aggregate("count", (_V,), distinct=True)),
    "spread": _query(Window(10 * SECOND, SECOND), None, Aggregate("var_samp", (_X,))),
}
QUERIES = {name: spec.sql("s") for name, spec in SPECS.items()}

#: Windows of rows, for the tests that run them beside the others.
ROW_SPECS: dict[str, Query] = {
    "row_sums": _query(RowWindow(40, 15), None, Aggregate("sum", (_V,))),
    "row_sample": _query(
        RowWindow(5, 20), Comparison(">", _V, Literal(3, BIGINT)), Aggregate("first", (_X,))
    ),
}
ROW_QUERIES = {name: spec.sql("s") for name, spec in ROW_SPECS.items()}

#: Join queries. Which rows a join admits depends on how many batches it takes at once, so it is known
#: of some pairs only that they may be there.
JOIN_QUERIES = {
    "picked": "SELECT ts, k, v FROM s WHERE v = 7 OR k IS NULL",
    "pairs": "SELECT p.ts AS p, q.ts AS q FROM s p, s q WHERE p.k = q.k AND q.v = p.v + 1 "
    "AND q.ts > p.ts AND q.ts <= p.ts + INTERVAL 2 SECONDS",
    "triples": "SELECT p.ts AS p, q.ts AS q, r.ts AS r FROM s p, s q, s r WHERE p.k = q.k "
    "AND q.v = p.v + 1 AND q.ts > p.ts AND q.ts <= p.ts + INTERVAL 2 SECONDS AND q.k = r.k "
    "AND r.v = q.v AND r.ts > q.ts AND r.ts <= q.ts + INTERVAL 1 SECOND",
    "united": "SELECT q.ts AS at FROM s p, s q WHERE p.k = q.k AND q.v = p.v + 1 "
    "AND q.ts > p.ts AND q.ts <= p.ts + INTERVAL 2 SECONDS UNION SELECT ts FROM s WHERE v = 7",
    "repeated": "SELECT p.ts AS at FROM s p WHERE EXISTS (SELECT 1 FROM s q WHERE q.k = p.k "
    "AND q.v = p.v AND q.ts > p.ts AND q.ts <= p.ts + INTERVAL 2 SECONDS)",
    "unrepeated": "SELECT p.ts AS at FROM s p WHERE NOT EXISTS (SELECT 1 FROM s q WHERE q.k = p.k "
    "AND q.v = p.v AND q.ts > p.ts AND q.ts <= p.ts + INTERVAL 2 SECONDS)",
}


#: Aggregation joins.
AGGREGATION_JOINS = {
    "met": "SELECT p.k, COUNT(*) AS n, SUM(q.v) AS v FROM s p [WINDOW 6 SECONDS], s q [WINDOW 4 SECONDS] "
    "WHERE p.k = q.k AND p.v > 3 GROUP BY p.k EVERY 2 SECONDS",
}


def met() -> list[tuple[int, tuple[Any, ...]]]:
    """The result of the aggregation join at all its instants. A row counts if its pane, of two seconds, was
    open when it came."""
    admitted: list[dict[str, Any]] = []
    marks = [0, 0]
    for rows in batches():
        admitted += [row for row in rows if (row["ts"] // _PANE + 1) * _PANE > marks[-2]]
        latest = max(row["ts"] for row in rows) // 1000 * 1000 - DELAY
        marks.append(max(marks[-1], latest))
    results: list[tuple[int, tuple[Any, ...]]] = []
    for at in range(START // _PANE * _PANE - 10 * _PANE, marks[-1] + 1, _PANE):
        for key in ("a", "b"):
            left, right = (
                [r for r in admitted if r["k"] == key and at - seconds * SECOND <= r["ts"] < at]
                for seconds in (6, 4)
            )
            count = sum(row["v"] > 3 for row in left)
            if count and right:
                total = count * sum(row["v"] for row in right)
                results.append((0, (at, key, count * len(right), total)))
    return results


_PANE = 2 * SECOND


def joined(
    name: str, rows: list[dict[str, Any]], partners: list[dict[str, Any]]
) -> list[tuple[Any, ...]]:
    """The result of a join query over some rows. `partners`: those that a row must not match."""
    if name == "repeated":
        return [(row["ts"],) for row in rows if _repeats(row, rows)]
    if name == "unrepeated":
        closed = max(row["ts"] for row in partners) // 1000 * 1000 - DELAY - 2 * SECOND
        return [(row["ts"],) for row in rows if row["ts"] <= closed and not _repeats(row, partners)]
    if name == "picked":
        picked = (row for row in rows if row["v"] == 7 or row["k"] is None)
        return [(row["ts"], row["k"], row["v"]) for row in picked]
    pairs = [
        (p, q)
        for p in rows
        for q in rows
        if p["k"] == q["k"] is not None
        and q["v"] == p["v"] + 1
        and 0 < q["ts"] - p["ts"] <= 2 * SECOND
    ]
    if name == "pairs":
        return [(p["ts"], q["ts"]) for p, q in pairs]
    if name == "united":
        times = {q["ts"] for _, q in pairs} | {row["ts"] for row in rows if row["v"] == 7}
        return [(time,) for time in times]
    return [
        (p["ts"], q["ts"], r["ts"])
        for p, q in pairs
        for r in rows
        if q["k"] == r["k"] and r["v"] == q["v"] and 0 < r["ts"] - q["ts"] <= SECOND
    ]


def _repeats(row: dict[str, Any], others: list[dict[str, Any]]) -> bool:
    """Whether a row comes again within two seconds."""
    return row["k"] is not None and any(
        (other["k"], other["v"]) == (row["k"], row["v"])
        and 0 < other["ts"] - row["ts"] <= 2 * SECOND
        for other in others
    )


def surely_admitted(count: int) -> list[dict[str, Any]]:
    """The rows of the first batches that are above every watermark a join may have had."""
    kept, latest = [], 0
    for rows in batches()[:count]:
        kept += [row for row in rows if row["ts"] > latest - DELAY]
        latest = max(latest, *(row["ts"] for row in rows))
    return kept


def batches() -> list[list[dict[str, Any]]]:
    """The same rows on every run."""
    chance = random.Random(7)
    found = []
    for batch in range(BATCHES):
        rows = []
        for _ in range(60):
            at = START + batch * 3 * SECOND + chance.randrange(-4 * SECOND, 4 * SECOND)
            rows.append(
                {
                    "ts": at,
                    "k": chance.choice(["a", "b", None]),
                    "v": chance.randrange(10),
                    "x": chance.choice([0.5, 1.25, -3.0, None]),
                }
            )
        found.append(rows)
    return found
