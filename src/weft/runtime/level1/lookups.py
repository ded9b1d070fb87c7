"""The rows of a micro-batch after their lookups in tables, in native Spark.

Every lookup is a join with the contents of a table, which Spark broadcasts: rows of the stream are not
shuffled. Columns get the names of `weft.algebra.network.lookup`, so no two are alike, and conditions need no
qualifiers. A mark is an existence join. It adds no rows: its value is NULL where there is no match and
a condition of `unknown` holds for some row of the table.

Tables that are looked up for a table's rows are joined to it first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.algebra.network.lookup import FOUND, Lookup, prefix
from weft.algebra.predicates import PredicateSet
from weft.algebra.predicates.slots import column_name, plain_name, slot_of
from weft.algebra.predicates.spark_sql import join_sql
from weft.algebra.query import quote
from weft.runtime.frames import over

Tables = Callable[[str], DataFrame]
"""The contents of a table, in the version that the step uses."""
_JOINS = {"inner": "inner", "left": "left_outer"}


def looked_up(rows: DataFrame, lookups: Sequence[Lookup], tables: Tables) -> DataFrame:
    """The rows with what they get from tables."""
    for number, lookup in enumerate(lookups):
        beginning = prefix(lookup.table, number)
        table = looked_up(tables(lookup.table), lookup.lookups, tables)
        named = [F.col(quote(name)).alias(beginning + name) for name in table.columns]
        found = beginning + FOUND
        if lookup.kind == "mark":
            rows = _marked(rows, table.select(*named), lookup, beginning)
            continue
        matches = table.select(*named, F.lit(True).alias(found))
        matching = F.expr(_condition(lookup.predicates, beginning))
        rows = rows.join(F.broadcast(matches), matching, _JOINS[lookup.kind])
        if lookup.kind == "left":
            rows = rows.withColumn(found, F.coalesce(F.col(quote(found)), F.lit(False)))
    return rows


def _marked(rows: DataFrame, table: DataFrame, lookup: Lookup, beginning: str) -> DataFrame:
    """The rows with one more column: whether there is a match."""

    def exists(predicates: PredicateSet, name: str) -> str:
        return f"EXISTS (SELECT 1 FROM {name} WHERE {_condition(predicates, beginning)})"

    def text(of_rows: str, of_table: str) -> str:
        value = exists(lookup.predicates, of_table)
        if lookup.unknown:
            open_ = " OR ".join(exists(predicates, of_table) for predicates in lookup.unknown)
            value = f"CASE WHEN {value} THEN true WHEN {open_} THEN cast(NULL AS boolean) ELSE false END"
        return f"SELECT *, {value} AS {quote(beginning + FOUND)} FROM {of_rows}"

    return over(text, rows, table)


def _condition(predicates: PredicateSet, beginning: str) -> str:
    """The predicates over the columns of the rows, and of the table under their new names."""

    def named(name: str) -> str:
        slot = slot_of(name)
        return column_name(slot, beginning + plain_name(name)) if slot else name

    return join_sql(predicates.renamed(named))
