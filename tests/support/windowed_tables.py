"""Windowed aggregates over a stream `s` and tables, and DuckDB's answer to them.

DuckDB gets a row for every pair of a row and a window that holds it, without the pairs that are late, and with the step
that emits the window. So one grouped query gives what a whole run must emit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import pyarrow as pa
from tests.oracle.sparktypes import Type

SECOND = 1_000_000
DELAY = 5 * SECOND
RANGE, SLIDE = 10 * SECOND, 5 * SECOND
WINDOW = "window(s.ts, '10 seconds', '5 seconds')"
SCHEMA = {
    "ts": Type("timestamp"),
    "id": Type("bigint"),
    "k": Type("int"),
    "s": Type("string"),
    "x": Type("bigint"),
}
COLOURS = "code string, name string, rank int, shop bigint"
SHOPS = "id int, city string"
FIRST = [
    ("x1", "red", 2, 1),
    ("x2", "blue", 1, None),
    ("x3", "green", 3, 2),
    ("x3", "lime", 4, 9),
    (None, "none", 5, 1),
]
CHANGED = [("x1", "crimson", 2, 1), ("x2", "blue", 5, 2)]
CITIES = [(1, "Rome"), (2, "Oslo"), (2, "Bergen"), (None, "-")]

Row = Mapping[str, Any]


def some_batches(number: int) -> list[list[dict[str, Any]]]:
    """Micro-batches with NULL keys and rows without event time, and one that ends all windows and has a row that
    is late for some of them."""
    codes = ["x1", "x2", "x3", None, "x9"]
    batches: list[list[dict[str, Any]]] = []
    for batch in range(number):
        rows: list[dict[str, Any]] = []
        for place in range(14):
            id_ = 14 * batch + place
            at: int | None = (batch * 12 + place) * SECOND + 250_000
            if place == 9:
                at = None
            code = codes[(id_ * 7 + place // 3) % 5]
            rows.append({"ts": at, "id": id_, "k": id_ % 3, "s": code, "x": id_ % 11})
        batches.append(rows)
    late = {"ts": 0, "id": 998, "k": 1, "s": "x3", "x": 7}
    batches.append([late, {"ts": 300 * SECOND, "id": 999, "k": 0, "s": "x1", "x": 1}])
    return batches


def watermarks(batches: Sequence[Sequence[Row]]) -> list[int]:
    """The watermark of every micro-batch, and that of the flush at the end."""
    marks = [0]
    for batch in batches:
        latest = max((row["ts"] for row in batch if row["ts"] is not None), default=0)
        marks.append(max(marks[-1], latest - DELAY))
    return marks


def answer(
    sql: str,
    batches: Sequence[Sequence[Row]],
    colours: Sequence[Sequence[tuple[Any, ...]]] = (FIRST,),
) -> list[tuple[int, tuple[Any, ...]]]:
    """What a query emits, with the step of each row. `colours` are contents of the table by micro-batch; the
    last ones hold for all that follow."""
    marks = watermarks(batches)
    pairs: list[dict[str, Any]] = []
    for number, batch in enumerate(batches):
        version = min(number, len(colours) - 1)
        for row in batch:
            if row["ts"] is None:
                continue
            last = row["ts"] // SLIDE * SLIDE
            for start in range(last - RANGE + SLIDE, last + 1, SLIDE):
                end = start + RANGE
                is_late = number > 0 and end <= marks[number - 1]
                emitting = [step for step, mark in enumerate(marks) if mark >= end]
                if not is_late and emitting:
                    pairs.append({**row, "w": start, "step": emitting[0], "v": version})
    columns = {"ts": "int64", "id": "int64", "k": "int32", "s": "string", "x": "int64"}
    columns |= {"w": "int64", "step": "int64", "v": "int64"}
    schema = pa.schema([(name, pa.type_for_alias(type_)) for name, type_ in columns.items()])
    text = sql.replace("window.start AS w", "s.w").replace(WINDOW, "s.step, s.w")
    if len(colours) > 1:
        text = text.replace("s.s = c.code", "s.s = c.code AND s.v = c.v")
    text = text.replace("SELECT", "SELECT s.step,", 1)
    with duckdb.connect() as database:
        database.register("s", pa.Table.from_pylist(pairs, schema=schema))
        database.execute(
            "CREATE TABLE colours (code VARCHAR, name VARCHAR, rank INT, shop BIGINT, v INT)"
        )
        rows = [(*row, version) for version, table in enumerate(colours) for row in table]
        database.executemany("INSERT INTO colours VALUES (?, ?, ?, ?, ?)", rows)
        database.execute("CREATE TABLE shops (id INT, city VARCHAR)")
        database.executemany("INSERT INTO shops VALUES (?, ?)", CITIES)
        return [(step, tuple(row)) for step, *row in database.execute(text).fetchall()]
