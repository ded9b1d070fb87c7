"""Finding the query that makes a micro-batch fail.

Only queries with an expression that can raise are suspects, and those that look up tables, whose columns may
have changed. They are bisected on the batch's rows: a set of queries that fails is halved until single queries
remain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from weft.algebra.query import Query, StreamSchema
from weft.kernel.failure import QueryFailure
from weft.optimizer.gtweave import share
from weft.runtime.frames import failure_of
from weft.runtime.level1.fragments import fragments
from weft.runtime.level1.lookups import Tables, looked_up
from weft.runtime.quiet import quiet_sql_errors


def culprits(
    rows: DataFrame, queries: Sequence[Query], stream: StreamSchema, tables: Tables
) -> dict[str, QueryFailure]:
    """The queries that fail on these rows, with their errors. Empty if the rows themselves cannot be
    read: then no query is at fault."""
    suspects = [query for query in queries if can_raise(query) or query.lookups]
    failures: dict[str, QueryFailure] = {}
    try:
        with quiet_sql_errors():
            rows.write.format("noop").mode("overwrite").save()
            _bisect(_Batch(rows, stream, tables), suspects, failures)
    except PySparkException:
        return {}
    return failures


def can_raise(query: Query) -> bool:
    aggregates = query.aggregates
    expressions = [*query.keys, *(argument for a in aggregates for argument in a.arguments)]
    expressions += [a.filter for a in aggregates if a.filter is not None]
    if query.predicate is not None:
        expressions.append(query.predicate)
    return any(expression.can_raise for expression in expressions)


@dataclass(frozen=True)
class _Batch:
    """A micro-batch and the tables of its step."""

    rows: DataFrame
    stream: StreamSchema
    tables: Tables


def _bisect(batch: _Batch, suspects: Sequence[Query], failures: dict[str, QueryFailure]) -> None:
    if not suspects:
        return
    error = _error(batch, suspects)
    if error is None:
        return
    if len(suspects) == 1:
        failures[suspects[0].id] = failure_of(error)
        return
    middle = len(suspects) // 2
    _bisect(batch, suspects[:middle], failures)
    _bisect(batch, suspects[middle:], failures)


def _error(batch: _Batch, queries: Sequence[Query]) -> PySparkException | None:
    try:
        for node in share(0, batch.stream, queries, {}).nodes:
            rows = looked_up(batch.rows, node.lookups, batch.tables)
            fragments(rows, node, batch.stream).write.format("noop").mode("overwrite").save()
    except PySparkException as error:
        return error
    return None
