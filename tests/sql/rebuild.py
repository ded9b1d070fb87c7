"""A bound query as plain Spark SQL again, to compare meanings."""

from __future__ import annotations

from weft.algebra.aggregate import Aggregate
from weft.algebra.query import Query, quote
from weft.algebra.scalar import to_sql
from weft.algebra.window import Window


def rebuilt(query: Query) -> str:
    """Groups the stream into `k0…`, `a0…` and the window, then projects the outputs."""
    grouped = [f"{key.sql} AS k{index}" for index, key in enumerate(query.keys)]
    aggregated = [f"{_call(each)} AS a{index}" for index, each in enumerate(query.aggregates)]
    window = _window(query.window)
    inner = ", ".join(["window", *grouped, *aggregated])
    where = f" WHERE {query.predicate.sql}" if query.predicate else ""
    keys = ", ".join([window, *(key.sql for key in query.keys)])
    values = f"SELECT {inner} FROM bids{where} GROUP BY {keys}"
    bounds = "window.start AS window_start, window.end AS window_end"
    columns = ", ".join(
        f"{to_sql(column.value)} AS {quote(column.name)}" for column in query.columns
    )
    having = f" WHERE {to_sql(query.having)}" if query.having is not None else ""
    return f"SELECT {columns} FROM (SELECT *, {bounds} FROM ({values})){having}"


def _window(window: Window) -> str:
    return f"window(`ts`, {window.range}L, {window.slide}L, {window.start}L)"


def _call(aggregate: Aggregate) -> str:
    arguments = [argument.sql for argument in aggregate.arguments] or ["*"]
    parameters = aggregate.parameters
    if aggregate.function == "approx_percentile":
        is_array, accuracy, *percentages = parameters
        listed = ", ".join(f"{each}D" for each in percentages)
        arguments += [f"array({listed})" if is_array else listed, str(accuracy)]
    elif aggregate.function == "approx_count_distinct":
        arguments.append(f"{parameters[0]}D")
    elif "ignore_nulls" in parameters:
        arguments.append("true")
    distinct = "DISTINCT " if aggregate.distinct else ""
    filter_ = f" FILTER (WHERE {aggregate.filter.sql})" if aggregate.filter else ""
    return f"{aggregate.function}({distinct}{', '.join(arguments)}){filter_}"
