"""Joins of fifteen inputs, the most that a query may have: the rows of DuckDB, step by step."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tests.support.closed_oracle import bound
from tests.support.network_engine import EngineRun
from tests.support.network_steps import SECOND, STREAMS, GeneratedPlans, counted, table

from weft.algebra.network.sets import NetworkQuery

INPUTS = 15
NEXT = "r{m}.ts = r{n}.ts + INTERVAL 1 SECOND"
SHAPES = {
    "chain": f"r{{n}}.g = r{{m}}.k AND {NEXT}",
    "disjunctions": f"(r{{n}}.g = r{{m}}.k OR r{{n}}.s = r{{m}}.s AND r{{n}}.k = 1) AND {NEXT}",
}


@dataclass(frozen=True)
class Wide:
    """A query by its text."""

    sql: str
    number: int

    @property
    def id(self) -> str:
        return self.query().id

    def query(self) -> NetworkQuery:
        return bound(self.sql, self.number, self.number)


def chain(shape: str) -> str:
    """Each input is connected with the next one."""
    streams = ", ".join(f"{'b' if n % 5 == 3 else 'a'} r{n}" for n in range(INPUTS))
    conditions = (SHAPES[shape].format(n=n, m=n + 1) for n in range(INPUTS - 1))
    return f"SELECT r0.s, r{INPUTS - 1}.x FROM {streams} WHERE {' AND '.join(conditions)}"


def star() -> str:
    """Each input is connected with the first one."""
    streams = ", ".join(f"{'a' if n % 2 else 'b'} r{n}" for n in range(INPUTS))
    conditions = (
        f"r{n}.k = r0.k AND r{n}.ts = r0.ts + INTERVAL {n % 4} SECONDS" for n in range(1, INPUTS)
    )
    return f"SELECT r0.ts, r1.x, r{INPUTS - 1}.x AS last FROM {streams} WHERE {' AND '.join(conditions)}"


def rows(chance: random.Random, step: int) -> pa.Table:
    """Rows of five seconds, three in each: a row has one successor on average."""
    made: list[dict[str, Any]] = []
    for second in [*range(5 * step, 5 * step + 5)] * 3:
        made.append(
            {
                "k": chance.randrange(3),
                "g": chance.randrange(3),
                "s": chance.choice(["", "a", "b", None]),
                "x": chance.random(),
                "ts": datetime.fromtimestamp(second, UTC),
                "#time": second * SECOND,
                "#step": step,
            }
        )
    return table("a", made)


@pytest.mark.parametrize("in_lanes", [False, True], ids=["driver", "lanes"])
def test_joins_of_fifteen_inputs(tmp_path: Path, in_lanes: bool) -> None:
    """In tasks one of them: every level of joins is a stage."""
    texts = [chain("chain"), chain("disjunctions"), star()]
    queries = [Wide(sql, number) for number, sql in enumerate(texts[:1] if in_lanes else texts)]
    run = EngineRun(tmp_path, queries, plan=GeneratedPlans())
    chance = random.Random(3)
    so_far: dict[str, list[pa.Table]] = {name: [] for name in STREAMS}
    before: dict[str, Counter[Any]] = {}
    for step in range(1, 5):
        delta = {name: rows(chance, step) for name in STREAMS}
        emitted = run.step(delta, 0, in_lanes=in_lanes)
        with duckdb.connect() as database:
            database.execute("SET TimeZone = 'UTC'")
            for name in STREAMS:
                so_far[name].append(delta[name])
                database.register(name, pa.concat_tables(so_far[name]))
            for query in queries:
                now = counted(database.sql(query.sql).to_arrow_table())
                assert emitted.pop(query.id, Counter()) == now - before.get(query.id, Counter())
                before[query.id] = now
        assert not emitted and not run.failed
    assert all(total.total() > 5 for total in before.values()), before
