"""The rows that a stream publishes for its row windows: all that are not late, with all columns.

All columns are needed: the order of rows uses all orderable ones, and a query that is registered later
may read any of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from weft.algebra.numbered import PENDING_TIME
from weft.algebra.query import StreamSchema, quote
from weft.runtime.checkpoint.commits import Edition
from weft.runtime.rows.engine import ROWS


@dataclass(frozen=True)
class RowsPublication:
    """Publishes the rows that are to be numbered."""

    source: StreamSchema
    row: StructType
    """The stream's columns that files can hold."""
    asked: Callable[[], bool]
    """Whether there are row windows, and the stream is read with all columns."""
    name: str = ROWS
    time_column: str = PENDING_TIME

    @property
    def wanted(self) -> bool:
        return self.asked()

    def edition(self) -> Edition:
        """All columns of all rows are for every query."""
        return Edition()

    def rows(self, rows: DataFrame, watermark_before: int, edition: Edition) -> DataFrame:
        at = F.col(quote(PENDING_TIME))
        timed = rows.withColumn(PENDING_TIME, F.expr(self.source.time_micros))
        admitted = timed.where(at >= F.lit(watermark_before))
        return admitted.select(*(F.col(quote(field.name)) for field in self.row), at)
