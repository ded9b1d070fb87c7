"""Binds an aggregation join: inputs with windows, conditions, keys, aggregates, outputs, instants.

The result is free of the text's spelling: inputs of queries that differ in case, quoting, order of conditions, or in
subqueries that only select, project or rename have equal selections and attributes, so their aggregation sets are
the same (`weft.algebra.joinagg.sets`).

The result has the column `at`, the instant: where the query selects it, else in front. HAVING and the columns
are over `k0…`, `a0…` and `at`. Changes have the column `removed`, too, as the last one.
"""

from __future__ import annotations

from typing import Final

from weft.algebra.joinagg.query import AggregationInput, AggregationJoin
from weft.algebra.query import OutputColumn
from weft.algebra.scalar import Ref
from weft.algebra.types import BOOLEAN, TIMESTAMP
from weft.errors import SqlError
from weft.sql.fallback import Unshared
from weft.sql.grouping.outputs import Outputs
from weft.sql.joinagg.attributes import Attributes
from weft.sql.joinagg.conditions import bound_conditions
from weft.sql.joinagg.groups import (
    AT,
    InstantTime,
    JoinedAggregates,
    bound_keys,
)
from weft.sql.joinagg.windows import check_brackets, first_window, input_windows, step
from weft.sql.joins.bound import BoundBlock
from weft.sql.joins.connected import check_connected
from weft.sql.reading.source import Source
from weft.sql.reading.syntax import QueryExpression, Select, SetOperation
from weft.sql.scopes.names import output_name
from weft.sql.scopes.projection import aggregates
from weft.sql.scopes.sources import Sources

REMOVED: Final = "removed"
"""The result column that says of a change whether its group is gone."""


def aggregation_join(
    name: str, query_id: str, query: QueryExpression, plain: Sources, exact: Sources, changes: bool
) -> AggregationJoin:
    """The bound form of a SELECT whose inputs have windows. `plain` and `exact` read FROM with Spark's and with
    exact arithmetic."""
    check_brackets(plain, query)
    if isinstance(query, SetOperation):
        reason = f"{query.words} of aggregation joins has no shared form"
        raise Unshared(reason, query.at, "register each of them as a query of its own")
    if query.distinct_at is not None:
        reason = "SELECT DISTINCT with aggregates has no shared form"
        raise Unshared(reason, query.distinct_at, "GROUP BY the columns instead")
    rows, exact_rows = plain.rows(query, {}), exact.rows(query, {})
    windows = input_windows(plain)
    if not aggregates(query):
        raise plain.source.error("NO_AGGREGATE", first_window(plain))
    attributes = Attributes()
    conditions = bound_conditions(plain, exact, exact_rows, attributes)
    slots = tuple(range(len(plain.read)))
    check_connected(exact, BoundBlock(slots, conditions.between, ()))
    keys = bound_keys(query, rows, attributes)
    joined = JoinedAggregates(plain, attributes)
    outputs = Outputs(rows, keys.expressions, InstantTime(), joined.bind)
    columns = _columns(query, outputs, changes)
    having = None if query.having is None else outputs.having(query.having)
    return AggregationJoin(
        query_id,
        name,
        plain.source.text,
        tuple(
            AggregationInput(entry.relation, entry.alias, window, selection, attributes.of(slot))
            for slot, (entry, window, selection) in enumerate(
                zip(plain.read, windows, conditions.selections, strict=True)
            )
        ),
        conditions.between,
        keys.scalars,
        tuple(map(joined.joined, outputs.aggregates)),
        having,
        columns,
        step(plain, windows, query.instants),
        changes,
    )


def _columns(select: Select, outputs: Outputs, changes: bool) -> tuple[OutputColumn, ...]:
    """The select list, with the instant in front unless it is selected."""
    source = outputs.rows.source
    instant = OutputColumn(AT, TIMESTAMP, Ref(AT, TIMESTAMP))
    columns: dict[str, OutputColumn] = {}
    for item in select.items:
        value, type_ = outputs.select(item.node, item.alias)
        label = output_name(item, outputs)
        column = OutputColumn(label, type_, value)
        if label.lower() in columns:
            detail = f"two result columns are called '{label}'; give one of them an alias"
            raise source.error("DUPLICATE_COLUMN", item.node.start, detail=detail)
        if (label.lower() == AT and value != instant.value) or (
            changes and label.lower() == REMOVED
        ):
            raise _reserved(source, item.node.start, label)
        columns[label.lower()] = column
    mark = OutputColumn(REMOVED, BOOLEAN, Ref(REMOVED, BOOLEAN))
    shown = (*(() if AT in columns else (instant,)), *columns.values())
    return (*shown, mark) if changes else shown


def _reserved(source: Source, at: int, label: str) -> SqlError:
    what = "its instant" if label.lower() == AT else "whether its group is gone"
    detail = (
        f"a result row of an aggregation join has {what} in the column '{label.lower()}'; "
        f"give this column an alias"
    )
    return source.error("DUPLICATE_COLUMN", at, detail=detail)
