"""What a sink is, what it is handed, and how often it is tried."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from weft.errors import RunError
from weft.kernel.windows.results import QUERY_COLUMN
from weft.runtime.cause import cause_of
from weft.runtime.checkpoint.commits import Entry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Named(Protocol):
    """Anything with a name: a result column, to a sink."""

    @property
    def name(self) -> str: ...


class Delivered(Protocol):
    """As much of a query as sinks look at."""

    @property
    def id(self) -> str: ...
    @property
    def name(self) -> str: ...
    @property
    def columns(self) -> Sequence[Named]: ...


@dataclass(frozen=True)
class StepResults:
    """The results of one step: a table per result family, and the queries behind them."""

    stream: str
    step: str
    batch: int
    attempt: str
    families: Mapping[str, pa.Table]
    queries: Mapping[str, Delivered]
    spark: SparkSession

    def only(self, wanted: Callable[[str], bool]) -> StepResults:
        """The results of the queries whose name is wanted."""
        chosen_ids = [id_ for id_, query in self.queries.items() if wanted(query.name)]
        ids = pa.array(chosen_ids, pa.string())
        families = {}
        for name, table in self.families.items():
            chosen = table.filter(pc.is_in(table.column(QUERY_COLUMN), value_set=ids))
            if chosen.num_rows:
                families[name] = chosen
        return StepResults(
            self.stream, self.step, self.batch, self.attempt, families, self.queries, self.spark
        )

    def by_query(self) -> Iterator[tuple[Delivered, pa.Table]]:
        """Each query's rows in its own column names, in an order that a replay repeats."""
        for table in self.families.values():
            for id_ in pc.unique(table.column(QUERY_COLUMN)).to_pylist():
                query = self.queries[id_]
                rows = table.filter(pc.equal(table.column(QUERY_COLUMN), id_))
                names = [column.name for column in query.columns]
                plain = rows.drop_columns([QUERY_COLUMN])
                yield query, _in_fixed_order(plain).rename_columns(names)


class Sink(Protocol):
    """A destination of results. `write` returns manifest entries for files that must be
    named by the commit, and may be called again with the same step after a failure."""

    @property
    def name(self) -> str: ...
    def write(self, results: StepResults) -> list[Entry]: ...


def deliver(sink: Sink, results: StepResults, tries: int, pause_seconds: float) -> list[Entry]:
    """Hand the results of a step to a sink, trying again after a pause if it fails."""
    for attempt in range(1, tries):
        try:
            return sink.write(results)
        except Exception:
            time.sleep(pause_seconds * attempt)
    try:
        return sink.write(results)
    except Exception as error:
        raise RunError(
            "SINK_FAILED",
            sink=sink.name,
            tries=tries,
            batch=results.batch,
            detail=cause_of(error),
        ) from error


def _in_fixed_order(table: pa.Table) -> pa.Table:
    """Rows sorted by all columns that can be compared: the same in every delivery."""
    keys = [
        (field.name, "ascending")
        for field in table.schema
        if not pa.types.is_nested(field.type) and not pa.types.is_null(field.type)
    ]
    return table.sort_by(keys) if keys else table
