"""Types and names of expressions by Spark's own analysis."""

from __future__ import annotations

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from weft.algebra.query import Field, quote
from weft.algebra.types import SqlType
from weft.sql.binding.analyzer import AnalysisProblem


class SparkAnalyzer:
    """Analyses expressions over an empty relation of the given columns."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._relations: dict[tuple[Field, ...], DataFrame] = {}

    def types(
        self, fields: tuple[Field, ...], expressions: tuple[str, ...]
    ) -> tuple[SqlType | AnalysisProblem, ...]:
        return tuple(self._type(fields, expression) for expression in expressions)

    def output_names(
        self, fields: tuple[Field, ...], expressions: tuple[str, ...]
    ) -> tuple[str, ...]:
        return tuple(self._select(fields, expression).columns[0] for expression in expressions)

    def _type(self, fields: tuple[Field, ...], expression: str) -> SqlType | AnalysisProblem:
        try:
            selected = self._select(fields, expression)
            return str(selected.schema.fields[0].dataType.simpleString())
        except PySparkException as error:
            message = str(error).strip().split("\n", 1)[0]
            return AnalysisProblem(error.getCondition() or "INVALID", message)

    def _select(self, fields: tuple[Field, ...], expression: str) -> DataFrame:
        """The expression over the columns; grouped by all of them, so aggregates may mix in."""
        relation = self._relations.get(fields)
        if relation is None:
            ddl = ", ".join(f"{quote(field.name)} {field.type}" for field in fields)
            relation = self._relations[fields] = self._spark.createDataFrame([], ddl)
        try:
            return relation.selectExpr(expression)
        except PySparkException as error:
            if "GROUP" not in (error.getCondition() or ""):
                raise
            grouped = relation.groupBy(*[quote(field.name) for field in fields])
            from pyspark.sql import functions as F

            return (
                grouped.agg(F.expr(expression))
                .select(F.col("*"))
                .drop(*[field.name for field in fields])
            )
