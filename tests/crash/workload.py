"""A small stream with late and out-of-order rows, and queries of every kind of state."""

from __future__ import annotations

import random

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


def batches() -> list[list[dict[str, object]]]:
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
