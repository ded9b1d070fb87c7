"""Finding the query that makes a micro-batch fail.

Only queries with an expression that can raise are suspects. They are bisected on the batch's rows: a
set of queries that fails is halved until single queries remain.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from weft.algebra.query import Query, StreamSchema
from weft.kernel.failure import QueryFailure
from weft.optimizer.gtweave import share
from weft.runtime.frames import failure_of
from weft.runtime.level1.fragments import fragments
from weft.runtime.quiet import quiet_sql_errors


def culprits(
    rows: DataFrame, queries: Sequence[Query], stream: StreamSchema
) -> dict[str, QueryFailure]:
    """The queries that fail on these rows, with their errors. Empty if the rows themselves cannot be
    read: then no query is at fault."""
    suspects = [query for query in queries if can_raise(query)]
    failures: dict[str, QueryFailure] = {}
    try:
        with quiet_sql_errors():
            rows.write.format("noop").mode("overwrite").save()
            _bisect(rows, suspects, stream, failures)
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


def _bisect(
    rows: DataFrame,
    suspects: Sequence[Query],
    stream: StreamSchema,
    failures: dict[str, QueryFailure],
) -> None:
    if not suspects:
        return
    error = _error(rows, suspects, stream)
    if error is None:
        return
    if len(suspects) == 1:
        failures[suspects[0].id] = failure_of(error)
        return
    middle = len(suspects) // 2
    _bisect(rows, suspects[:middle], stream, failures)
    _bisect(rows, suspects[middle:], stream, failures)


def _error(
    rows: DataFrame, queries: Sequence[Query], stream: StreamSchema
) -> PySparkException | None:
    try:
        for node in share(0, stream, queries, {}).nodes:
            fragments(rows, node, stream).write.format("noop").mode("overwrite").save()
    except PySparkException as error:
        return error
    return None
