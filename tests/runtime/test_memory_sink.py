"""The memory sink holds so many rows and no more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest

import weft
from weft.runtime.sinks.delivery import StepResults


@dataclass(frozen=True)
class Column:
    name: str


@dataclass(frozen=True)
class Query:
    id: str
    name: str
    columns: tuple[Column, ...]


def step(number: int, rows: int, spark: Any = None) -> StepResults:
    table = pa.table({"query": ["q@1"] * rows, "c0": [number] * rows})
    queries = {"q@1": Query("q@1", "q", (Column("n"),))}
    families = {"f": table} if rows else {}
    return StepResults("s", str(number), number, "", families, queries, spark)


def held(sink: Any) -> list[int]:
    return [row for table in sink.tables("q@1") for row in table.column("n").to_pylist()]


def test_the_oldest_steps_go() -> None:
    sink = weft.sinks.memory(rows=10)
    for number in range(1000):
        sink.write(step(number, 4))
    assert held(sink) == [998] * 4 + [999] * 4
    assert len(sink._steps) == len(sink._rows) == 2


def test_a_large_step_is_held_whole() -> None:
    sink = weft.sinks.memory(rows=10)
    sink.write(step(0, 3))
    sink.write(step(1, 30))
    assert held(sink) == [1] * 30


def test_steps_without_rows_cost_nothing_and_a_replay_counts_once() -> None:
    sink = weft.sinks.memory()
    for number in range(1000):
        sink.write(step(number, 0))
    assert len(sink._steps) == 0
    sink.write(step(7, 2))
    sink.write(step(7, 2))
    assert held(sink) == [7, 7]


@pytest.mark.parametrize("rows", [0, -1, "many", True])
def test_the_number_of_rows_is_checked(rows: Any) -> None:
    with pytest.raises(weft.RunError, match="BAD_SETTING"):
        weft.sinks.memory(rows)
