"""What a stream publishes for aggregation joins: the rows of late inputs, and the panes of early ones.

Rows are selected by one native condition, that of any late source of the stream, and projected to what these need of a row. Each has
its event time, and the stream's watermark when it came: by these the follower decides whether its pane was still open. So the same rows
count as in panes, whatever the pane. Panes are written by the engine of windows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.algebra.joinagg.row_lifts import RowColumn, row_columns
from weft.algebra.joinagg.sets import PANES
from weft.algebra.joinagg.sources import Source
from weft.algebra.network.query import BEFORE
from weft.algebra.query import StreamSchema
from weft.runtime.checkpoint.commits import Edition

LATE_ROWS: Final = "late"
"""The name of the publication of rows."""
TIME: Final = "#time"
"""The column of published rows that holds the event time in microseconds. That of the watermark before the step is BEFORE."""


@dataclass(frozen=True)
class LateRowsPublication:
    """Publishes the rows of one stream that late inputs want."""

    stream: StreamSchema
    sources: Callable[[], Sequence[Source]]
    """The sources of late inputs on the stream, whose columns are read."""
    name: str = LATE_ROWS
    time_column: str = TIME

    @property
    def wanted(self) -> bool:
        return bool(self.sources())

    def edition(self) -> Edition:
        return Edition(names=tuple(sorted(source.id for source in self.sources())))

    def rows(self, rows: DataFrame, watermark_before: int, edition: Edition) -> DataFrame:
        served = [source for source in self.sources() if source.id in edition.names]
        columns: dict[str, RowColumn] = {}
        conditions: list[str] = []
        for source in served:
            made = row_columns(source, self.stream)
            columns |= {column.name: column for column in made.all}
            conditions.append(f"({made.selected.sql})" if made.selected else "true")
        condition = "false" if not served else " OR ".join(dict.fromkeys(conditions))
        kept = rows if "true" in conditions else rows.where(F.expr(condition))
        time = F.expr(self.stream.time_micros)
        return kept.where(time.isNotNull()).select(
            time.alias(TIME),
            F.lit(watermark_before).cast("bigint").alias(BEFORE),
            *(F.expr(column.sql).alias(column.name) for column in columns.values()),
        )


@dataclass(frozen=True)
class PanesPublication:
    """The panes of one stream that early inputs want, which its engine of windows writes."""

    asked: Callable[[], bool]
    name: str = PANES

    @property
    def wanted(self) -> bool:
        return self.asked()
