"""Brute force: what a query over windows of rows emits, step by step.

A batch's rows with an event time at or after the watermark before it are admitted. A step numbers
the admitted rows before its watermark, in the order of (event time, all columns as the schema has
them, NULL first, strings by their UTF-8 bytes). Window k has the numbers from k · slide on, as many as
its range; it is emitted by the step that gives its last number.

>>> from .expressions import Aggregate, WindowColumn
>>> from .spec import Item, Query
>>> from .sparktypes import TIMESTAMP
>>> query = Query(RowWindow(2, 1), (Item(WindowColumn("end")), Item(Aggregate("count"), "n")))
>>> run(query, {"ts": TIMESTAMP}, [[{"ts": 3_000}, {"ts": 9_000}], [{"ts": 25_000}]], 0)
[(1, (1, 1)), (2, (2, 2))]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from . import model
from .expressions import Style, WindowColumn
from .model import Batches, Plan, Row, Schema
from .sparktypes import Type
from .spec import Query, Window
from .values import Value, sort_key

NUMBER = "number"


@dataclass(frozen=True)
class RowWindow(Window):
    """Range and slide in rows."""

    @property
    def needs_bracket(self) -> bool:
        return True

    def bracket(self, style: Style) -> str:
        unit = style.word("rows")
        return (
            f"[{style.word('range')} {self.range} {unit} {style.word('slide')} {self.slide} {unit}]"
        )


def numbered(schema: Schema, batches: Batches, delay: int) -> list[list[Row]]:
    """The rows that each step numbers, under their numbers; the flush is the last step."""
    marks = model.watermarks(batches, delay)
    pending: list[Row] = []
    steps: list[list[Row]] = []
    given = 0
    for index, batch in enumerate([*batches, []]):
        before, now = marks[max(index - 1, 0)], marks[index]
        pending += [row for row in batch if row["ts"] is not None and row["ts"] >= before]
        due = sorted((row for row in pending if row["ts"] < now), key=lambda r: _order(r, schema))
        pending = [row for row in pending if row["ts"] >= now]
        steps.append([{**row, NUMBER: given + place} for place, row in enumerate(due)])
        given += len(due)
    return steps


def late(batches: Batches, delay: int) -> int:
    """How many rows come too late to get a number."""
    marks = model.watermarks(batches, delay)
    return sum(
        row["ts"] is not None and row["ts"] < marks[max(index - 1, 0)]
        for index, batch in enumerate(batches)
        for row in batch
    )


def run(
    query: Query, schema: Schema, batches: Batches, delay: int, *, ansi: bool = True
) -> list[tuple[int, tuple[Value, ...]]]:
    """The emitted rows, each with the index of its step; raises `ModelError` where Spark does."""
    plan = Plan(replace(query, time=NUMBER), schema, ansi=ansi)
    windows: dict[tuple[int, tuple[Value, ...]], list[Any]] = {}
    emitted: list[tuple[int, tuple[Value, ...]]] = []
    given = 0
    for step, rows in enumerate(numbered(schema, batches, delay)):
        for row in rows:
            given += 1
            admitted = plan.admit(row)
            if admitted is not None:
                key, inputs = admitted
                for start in query.window.starts(row[NUMBER]):
                    windows.setdefault((start, key), []).append(inputs)
        for start, key in [found for found in windows if found[0] + query.window.range <= given]:
            output = plan.finish(start, key, windows.pop((start, key)))
            if output is not None:
                emitted.append((step, output))
    return emitted


def columns(query: Query, schema: Schema, *, ansi: bool = True) -> list[tuple[str, str]]:
    """The names and types of the output columns: bounds of windows are numbers."""
    numbers = {"start": "bigint", "end": "bigint", "window": "struct<start:bigint,end:bigint>"}
    return [
        (name, numbers[item.expression.part])
        if isinstance(item.expression, WindowColumn)
        else (name, type_)
        for item, (name, type_) in zip(
            query.select, model.columns(query, schema, ansi=ansi), strict=True
        )
    ]


def _order(row: Row, schema: Mapping[str, Type]) -> list[Any]:
    values = [row["ts"], *(row[name] for name in schema)]
    return [(value is not None, value is not None and _comparable(value)) for value in values]


def _comparable(value: Value) -> Any:
    return sort_key(value.encode() if isinstance(value, str) else value)
