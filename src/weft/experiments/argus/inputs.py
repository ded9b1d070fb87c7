"""Fed and Med as the experiments use them: rows in Arrow, queries bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from weft.algebra.network.query import JoinQuery
from weft.algebra.query import Field, StreamSchema
from weft.algebra.types import SqlType
from weft.experiments.argus.parameters import Scale
from weft.sql import AnalysisProblem, bind, interval_micros
from weft.workloads.categories import JoinSql
from weft.workloads.fed import queries as fed_queries
from weft.workloads.fed import stream as fed
from weft.workloads.med import queries as med_queries
from weft.workloads.med import stream as med
from weft.workloads.stored import spark_type


@dataclass(frozen=True)
class Inputs:
    """One workload: its rows in the order of time, and its queries interleaved by category."""

    scale: Scale
    stream: str
    rows: pa.Table
    queries: tuple[JoinSql, ...]
    watermark: str

    @property
    def history(self) -> pa.Table:
        return self.rows.slice(0, self.scale.history)

    @property
    def increments(self) -> list[pa.Table]:
        size = self.scale.increment
        return [
            self.rows.slice(self.scale.history + number * size, size)
            for number in range(self.scale.increments)
        ]

    @cached_property
    def by_node(self) -> Inputs:
        """Fewer rows, for joins that are run each by itself."""
        small = self.scale.by_node
        first = self.scale.history - small.history
        return replace(self, scale=small, rows=self.rows.slice(first, small.records))

    @cached_property
    def schema(self) -> StreamSchema:
        return schema_of(self.stream, self.rows, self.watermark)

    @cached_property
    def bound(self) -> tuple[JoinQuery, ...]:
        return bound(self.queries, self.schema)


def inputs(scale: Scale, seed: int) -> Inputs:
    """A workload's rows and its first queries."""
    count = max(scale.counts)
    if scale.workload == "fed":
        queries = tuple(fed_queries.queries(count, seed))
        rows = fed.transfers(seed, scale.records)
        return Inputs(scale, fed.STREAM, rows, queries, fed.WATERMARK)
    queries = tuple(med_queries.queries(count, seed))
    return Inputs(scale, med.STREAM, med.stays(seed, scale.records), queries, med.WATERMARK)


def schema_of(stream: str, rows: pa.Table, watermark: str) -> StreamSchema:
    """The stream of a table, its event time in the column `ts`."""
    fields = tuple(Field(field.name, spark_type(field.type)) for field in rows.schema)
    return StreamSchema(stream, fields, "ts", interval_micros(watermark))


def bound(queries: Sequence[JoinSql], schema: StreamSchema) -> tuple[JoinQuery, ...]:
    """The queries after binding. A query that is no join query is a mistake of the workload."""
    joins = []
    for query in queries:
        result = bind(
            query.name,
            query.sql,
            {schema.name: schema},
            _NoAnalyzer(),
            query_id=query.name,
            time_zone="UTC",
        )
        if not isinstance(result, JoinQuery):
            raise ValueError(f"{query.name} is not bound as a join query: {result}")
        joins.append(result)
    return tuple(joins)


class _NoAnalyzer:
    """All types in these queries are known without Spark."""

    def types(
        self, fields: tuple[Field, ...], expressions: tuple[str, ...]
    ) -> tuple[SqlType | AnalysisProblem, ...]:
        raise ValueError(f"only Spark knows the type of {', '.join(expressions)}")

    def output_names(
        self, fields: tuple[Field, ...], expressions: tuple[str, ...]
    ) -> tuple[str, ...]:
        raise ValueError(f"only Spark knows the name of {', '.join(expressions)}")
