"""The Fed workload from SQL to matches: a shared network in steps gives what DuckDB gives in full."""

from __future__ import annotations

from collections import Counter

import duckdb
import numpy as np
import pyarrow as pa
from tests.support.network_steps import counted

from weft.algebra.network.plan import NetworkPlan
from weft.algebra.network.query import JoinQuery
from weft.algebra.query import Field, StreamSchema
from weft.kernel import network
from weft.kernel.network import State
from weft.optimizer.network.estimate import HeuristicEstimate
from weft.optimizer.network.generate import with_queries
from weft.optimizer.network.index import ScanIndex
from weft.optimizer.network.options import Options
from weft.sql import bind
from weft.workloads.fed.queries import queries
from weft.workloads.fed.stream import STREAM, TIME, transfers

TYPES = {"int64": "bigint", "int32": "int", "string": "string", "date32[day]": "date"}


class NoAnalyzer:
    """Nothing in the workload needs Spark's word."""

    def __getattr__(self, name: str) -> None:
        raise AssertionError(name)


def sql_type(type_: pa.DataType) -> str:
    if pa.types.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    return "timestamp" if pa.types.is_timestamp(type_) else TYPES[str(type_)]


def test_one_query_of_every_category_in_four_steps() -> None:
    rows = transfers(records=4000)
    schema = StreamSchema(
        STREAM, tuple(Field(field.name, sql_type(field.type)) for field in rows.schema), TIME, 0
    )
    bound = []
    for query in queries(32):
        join = bind(
            query.name,
            query.sql,
            {STREAM: schema},
            NoAnalyzer(),
            query_id=query.name,
            time_zone="UTC",
        )
        assert isinstance(join, JoinQuery)
        bound.append(join)
    plan = with_queries(
        NetworkPlan(0), bound, (), [schema], ScanIndex(), Options(), HeuristicEstimate()
    )
    program = network.program(plan)
    assert sum(node.join is not None for node in program.nodes) < len(bound)
    state, before = State.empty(program), 0
    emitted: dict[str, Counter[object]] = {query.id: Counter() for query in bound}
    times = rows.column(TIME).cast(pa.int64())
    for start in range(0, 4000, 1000):
        part = rows.slice(start, 1000).append_column("#time", times.slice(start, 1000))
        part = part.append_column("#step", pa.array(np.full(1000, start)))
        after = times[start + 999].as_py() - 60_000_000
        outcome = network.advance(program, state, {STREAM: part}, before, after, {})
        state, before = outcome.state, after
        for query_id, new in outcome.results.items():
            emitted[query_id] += counted(new)
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        zoneless = rows.set_column(
            rows.column_names.index(TIME), TIME, rows.column(TIME).cast(pa.timestamp("us"))
        )
        database.register(STREAM, zoneless)
        for query in queries(32):
            assert emitted[query.name] == counted(database.sql(query.sql).to_arrow_table())
    assert sum(rows.total() > 0 for rows in emitted.values()) > 8
