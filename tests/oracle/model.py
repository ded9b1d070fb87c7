"""Brute force: what a windowed aggregate query emits, batch by batch (DESIGN §4.1).

The watermark belongs to the stream, before any predicate. With W_b the largest event time
of all batches before b, floored to milliseconds, minus the delay, starting at 0 and never
falling, batch b

1. drops every (row, window) pair whose window ends at or before W_{b-1};
2. then emits the windows with W_{b-1} < end ≤ W_b.

After the last batch a flush emits the windows that the final watermark has passed; it counts
as one more batch. Every window keeps all its rows until then: time and space are those of
rows × range/slide.

>>> from .expressions import Aggregate, WindowColumn
>>> from .spec import Item, Query, Window
>>> from .sparktypes import TIMESTAMP
>>> query = Query(Window(10_000), (Item(WindowColumn("end")), Item(Aggregate("count"), "n")))
>>> run(query, {"ts": TIMESTAMP}, [[{"ts": 1_000}, {"ts": 9_999}], [{"ts": 25_000}]], 0)
[(2, (10000, 2))]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .aggregates import Finish, Input, bind
from .conditions import Condition, raises
from .evaluate import Compiled, Scope, Slot, compile_expression
from .expressions import Aggregate, Column, Expression, WindowColumn
from .sparktypes import TIMESTAMP, WINDOW, Type
from .spec import Query
from .values import ModelError, Value, canonical

__all__ = ["ModelError", "Plan", "columns", "run", "watermarks"]

Schema = Mapping[str, Type]
Row = Mapping[str, Value]
Batches = Sequence[Sequence[Row]]

MILLISECOND = 1_000


def watermarks(batches: Batches, delay_micros: int, time: str = "ts") -> list[int]:
    """W_0, W_1, … and, last, the watermark after all batches, in microseconds."""
    delay = delay_micros // MILLISECOND * MILLISECOND
    found = [0]
    for batch in batches:
        times = [row[time] for row in batch if row[time] is not None]
        latest = max(times, default=0) // MILLISECOND * MILLISECOND - delay
        found.append(max(found[-1], latest) if times else found[-1])
    return found


def columns(query: Query, schema: Schema, *, ansi: bool = True) -> list[tuple[str, str]]:
    """The names and types of the output columns."""
    plan = Plan(query, schema, ansi=ansi)
    names = (item.name for item in query.select)
    return [(name, str(item.type)) for name, item in zip(names, plan.select, strict=True)]


def run(
    query: Query,
    schema: Schema,
    batches: Batches,
    delay_micros: int,
    *,
    flush_at_end: bool = True,
    ansi: bool = True,
    notes: set[str] | None = None,
) -> list[tuple[int, tuple[Value, ...]]]:
    """The emitted rows, each with the index of its batch; the flush is batch `len(batches)`.

    Raises `ModelError` where Spark raises. `notes` collects reasons why plain Spark might
    raise, or overflow to NULL, where the model does not: there its own answer depends on
    the order of rows, on late rows, or on whether it compiles expressions.
    """
    plan = Plan(query, schema, ansi=ansi, notes=notes)
    marks = watermarks(batches, delay_micros, query.time)
    windows: dict[tuple[Any, ...], list[list[Input | None]]] = {}
    emitted: list[tuple[int, tuple[Value, ...]]] = []
    steps: list[Sequence[Row]] = [*batches, []] if flush_at_end else list(batches)
    for index, batch in enumerate(steps):
        late = marks[max(index - 1, 0)]
        dropped: dict[tuple[Any, ...], list[list[Input | None]]] = {}
        for row in batch:
            admitted = plan.admit(row)
            if admitted is None:
                continue
            key, inputs = admitted
            for start in query.window.starts(row[query.time]):
                kept = windows if start + query.window.range > late else dropped
                kept.setdefault((start, key), []).append(inputs)
        plan.note_overflow(dropped.values())
        due = [item for item in windows if item[0] + query.window.range <= marks[index]]
        for start, key in due:
            output = plan.finish(start, key, windows.pop((start, key)))
            if output is not None:
                emitted.append((index, output))
    return emitted


class Plan:
    """A query bound to a schema."""

    def __init__(
        self, query: Query, schema: Schema, *, ansi: bool = True, notes: set[str] | None = None
    ) -> None:
        self.query = query
        self._notes: set[str] = set() if notes is None else notes
        row_scope: dict[Expression, Slot] = {
            Column(name): Slot(kind, name) for name, kind in schema.items()
        }
        self._where = Condition(query.where, row_scope, ansi=ansi)
        self._keys = [compile_expression(key, row_scope, ansi=ansi) for key in query.keys]
        self._arguments: list[tuple[Condition, list[Compiled]]] = []
        self._finishers: list[Finish] = []
        group_scope: dict[Expression, Slot] = {
            WindowColumn("window"): Slot(WINDOW, "window"),
            WindowColumn("start"): Slot(TIMESTAMP, "start"),
            WindowColumn("end"): Slot(TIMESTAMP, "end"),
        }
        for position, (key, compiled) in enumerate(zip(query.keys, self._keys, strict=True)):
            group_scope[key] = Slot(compiled.type, f"key {position}")
        for position, aggregate in enumerate(query.aggregates):
            kind = self._bind_aggregate(aggregate, row_scope, ansi)
            group_scope[aggregate] = Slot(kind, f"aggregate {position}")
        self._having = Condition(query.having, group_scope, ansi=ansi)
        self.select = [
            compile_expression(item.expression, group_scope, ansi=ansi) for item in query.select
        ]

    def _bind_aggregate(self, aggregate: Aggregate, scope: Scope, ansi: bool) -> Type:
        arguments = [compile_expression(item, scope, ansi=ansi) for item in aggregate.arguments]
        self._arguments.append((Condition(aggregate.where, scope, ansi=ansi), arguments))
        types = [argument.type for argument in arguments]
        kind, finish = bind(aggregate, types, ansi=ansi, notes=self._notes)
        self._finishers.append(finish)
        return kind

    def admit(self, row: Row) -> tuple[tuple[Value, ...], list[Input | None]] | None:
        """The group-by key and the aggregates' inputs of a row; None if it does not count."""
        if not self._where.holds(row):
            return None
        time = row[self.query.time]
        if time is None:
            return None
        key = tuple(canonical(key.value(row)) for key in self._keys)
        inputs: list[Input | None] = []
        for condition, arguments in self._arguments:
            if condition.holds(row):
                inputs.append(Input(time, tuple(argument.value(row) for argument in arguments)))
            else:
                inputs.append(None)
                if any(raises(argument, row) for argument in arguments):
                    self._notes.add("an argument raises on a row that FILTER rejects")
        return key, inputs

    def finish(
        self, start: int, key: tuple[Value, ...], rows: list[list[Input | None]]
    ) -> tuple[Value, ...] | None:
        """The output row of a window and key; None if HAVING rejects it."""
        end = start + self.query.window.range
        group: dict[str, Value] = {"window": (start, end), "start": start, "end": end}
        group |= {f"key {position}": value for position, value in enumerate(key)}
        aggregates = enumerate(self._aggregate(rows))
        group |= {f"aggregate {position}": value for position, value in aggregates}
        if not self._having.holds(group):
            if any(raises(item, group) for item in self.select):
                self._notes.add("a select item raises on a group that HAVING rejects")
            return None
        return tuple(item.value(group) for item in self.select)

    def note_overflow(self, groups: Iterable[list[list[Input | None]]]) -> None:
        """Notes if dropped rows overflow by themselves: Spark adds before it drops."""
        for rows in groups:
            try:
                self._aggregate(rows)
            except ModelError:
                self._notes.add("rows overflow that are dropped as late")

    def _aggregate(self, rows: list[list[Input | None]]) -> list[Value]:
        return [
            finish([item for row in rows if (item := row[position]) is not None])
            for position, finish in enumerate(self._finishers)
        ]
