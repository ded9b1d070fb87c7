"""Types and names of expressions by Spark's own analysis."""

from __future__ import annotations

import re

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.algebra.query import Field, quote
from weft.algebra.types import SqlType
from weft.sql.typing.analyzer import AnalysisProblem

_NO_KEY = re.compile(r"\bmap<|\bvariant\b|\binterval\b(?! )")
"""Types that Spark does not group by, alone or inside another."""


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
        return tuple(self._select(fields, expression).columns[-1] for expression in expressions)

    def _type(self, fields: tuple[Field, ...], expression: str) -> SqlType | AnalysisProblem:
        try:
            selected = self._select(fields, expression)
            return str(selected.schema.fields[-1].dataType.simpleString())
        except PySparkException as error:
            message = str(error).strip().split("\n", 1)[0]
            return AnalysisProblem(error.getCondition() or "INVALID", message)

    def _select(self, fields: tuple[Field, ...], expression: str) -> DataFrame:
        """The expression as the last column, over the given columns; grouped by all that can be
        keys where it has an aggregate, so that both may mix."""
        relation = self._relations.get(fields)
        if relation is None:
            ddl = ", ".join(f"{quote(field.name)} {field.type}" for field in fields)
            relation = self._spark.createDataFrame([], ddl or "nothing int")
            self._relations[fields] = relation
        try:
            return relation.selectExpr(expression)
        except PySparkException as error:
            if "GROUP" not in (error.getCondition() or ""):
                raise
            keys = [quote(field.name) for field in fields if not _NO_KEY.search(field.type)]
            return relation.groupBy(*keys).agg(F.expr(expression))
