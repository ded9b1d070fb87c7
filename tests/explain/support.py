"""Plans to explain, made from SQL without Spark."""

from __future__ import annotations

from collections.abc import Sequence

from weft.algebra.network.plan import NetworkPlan
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.numbered import numbered as row_stream
from weft.algebra.plan import SharedPlan
from weft.algebra.query import Field, Query, StreamSchema
from weft.algebra.types import SqlType
from weft.explain import Explanation, FallbackNote, explain
from weft.optimizer.gtweave import share
from weft.optimizer.network.estimate import HeuristicEstimate
from weft.optimizer.network.generate import with_queries
from weft.optimizer.network.index import ScanIndex
from weft.optimizer.network.options import Options
from weft.optimizer.weaving import Weaving
from weft.sql import AnalysisProblem, bind, statements

COLUMNS = {
    "auction": "bigint",
    "bidder": "bigint",
    "price": "bigint",
    "channel": "string",
    "weight": "double",
    "ts": "timestamp",
}
BIDS = StreamSchema("bids", tuple(Field(n, t) for n, t in COLUMNS.items()), "ts", 10_000_000)
CLICKS = StreamSchema(
    "clicks", (Field("page", "string"), Field("at", "timestamp")), "at", 2_000_000
)


class NoAnalyzer:
    """Fails on any question: what is explained here is known to the whitelist."""

    def types(
        self, fields: tuple[Field, ...], expressions: tuple[str, ...]
    ) -> tuple[SqlType | AnalysisProblem, ...]:
        raise AssertionError(f"Spark is asked for the types of {expressions}")

    def output_names(
        self, fields: tuple[Field, ...], expressions: tuple[str, ...]
    ) -> tuple[str, ...]:
        raise AssertionError(f"Spark is asked for the names of {expressions}")


def explained(
    sql: str,
    only: str | None = None,
    rate: float | None = None,
    weaving: Weaving | None = None,
) -> Explanation:
    """The explanation of all statements of a text, over the streams bids and clicks."""
    streams = {schema.name: schema for schema in (BIDS, CLICKS)}
    queries: list[Query] = []
    joins: list[NetworkQuery] = []
    notes: list[FallbackNote] = []
    for number, statement in enumerate(statements(sql), 1):
        name = statement.name or f"q{number}"
        bound = bind(name, statement.sql, streams, NoAnalyzer(), query_id=f"{name}@{number}")
        if isinstance(bound, Query):
            queries.append(bound)
        elif isinstance(bound, NetworkQuery):
            joins.append(bound)
        else:
            notes.append(FallbackNote(name, bound.stream, bound.reason))
    schemas = [kind for schema in streams.values() for kind in (schema, row_stream(schema))]
    plans = [_plan(schema, queries, weaving) for schema in schemas]
    shared = [plan for plan in plans if plan.queries]
    network = network_of(joins, tuple(streams.values()))
    return explain(shared, notes, only, rate=rate, network=network)


def network_of(queries: Sequence[NetworkQuery], streams: Sequence[StreamSchema]) -> NetworkPlan:
    """The network of join queries, added one by one."""
    return with_queries(
        NetworkPlan(0), queries, (), streams, ScanIndex(), Options(), HeuristicEstimate()
    )


def _plan(schema: StreamSchema, queries: list[Query], weaving: Weaving | None) -> SharedPlan:
    own = [query for query in queries if query.stream == schema.name]
    return share(0, schema, own, {}, weaving)


def numbered(template: str, count: int, prefix: str = "q") -> str:
    """Many statements from a template with `{n}`."""
    parts = [f"-- name: {prefix}{n:03d}\n{template.format(n=n)};" for n in range(1, count + 1)]
    return "".join(f"{part}\n" for part in parts)
