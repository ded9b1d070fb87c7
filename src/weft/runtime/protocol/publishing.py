"""What a stream publishes: the rows that followers need, as files that its commits name.

Before a step is staged or committed, it writes the rows of every wanted publication, selected and
projected as the follower needs them. A published file stays until its follower has consumed the step
and no longer retains the file. The number of steps that a follower has not consumed is bounded: at the
bound the stream waits before it begins another step.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from weft.runtime.checkpoint.commits import Commit, Edition, Entry, Intent
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.protocol.step import StepWork

PUBLISHED = "published"


class Publication(Protocol):
    """What one follower consumes of a log."""

    @property
    def name(self) -> str: ...

    @property
    def wanted(self) -> bool:
        """Whether the next step should publish it."""
        ...


class RowPublication(Publication, Protocol):
    """The rows of a stream's micro-batches that one follower consumes."""

    @property
    def time_column(self) -> str:
        """The column of the files that holds event time in microseconds."""
        ...

    def edition(self) -> Edition:
        """The queries for which the next step publishes."""
        ...

    def rows(self, rows: DataFrame, watermark_before: int, edition: Edition) -> DataFrame:
        """The rows to publish of a micro-batch."""
        ...


@dataclass(frozen=True)
class Consumer:
    """A follower as the stream sees it."""

    publication: Publication
    last: Callable[[], Commit | None]
    """Its last commit."""

    def consumed(self, log: str) -> str:
        """The step up to which it has consumed a log."""
        last = self.last()
        return last.inputs[log].step if last is not None and log in last.inputs else ""

    def retained(self) -> set[str]:
        last = self.last()
        return {entry["name"] for entry in last.retained} if last is not None else set()


class Publisher:
    """Writes a stream's publications, and deletes files that are no longer needed. A log without rows of
    its own publishes what its engine writes. Consumers may come and go while it runs."""

    def __init__(
        self,
        log: StreamLog,
        consumers: Sequence[Consumer] = (),
        rows: Sequence[RowPublication] = (),
        tasks: int = 1,
    ) -> None:
        self._log, self._consumers = log, tuple(consumers)
        self._rows, self._tasks = tuple(rows), tasks
        self._lock = threading.Lock()

    def add(self, consumer: Consumer) -> None:
        self._consumers = (*self._consumers, consumer)

    def remove(self, name: str) -> None:
        """Publish no longer for the consumer of a publication."""
        self._consumers = tuple(c for c in self._consumers if c.publication.name != name)

    @property
    def names(self) -> tuple[str, ...]:
        """What can be published."""
        return tuple(consumer.publication.name for consumer in self._consumers)

    @property
    def wanted(self) -> tuple[str, ...]:
        """What the next step publishes."""
        publications = [consumer.publication for consumer in self._consumers]
        return tuple(publication.name for publication in publications if publication.wanted)

    def editions(self) -> dict[str, Edition]:
        """For whom the next step publishes, by publication."""
        return {
            publication.name: publication.edition()
            for publication in self._rows
            if publication.wanted
        }

    def write(self, work: StepWork, intent: Intent) -> bool:
        """Write the publications of rows that the intent names, into `work.published`; whether Spark has
        read rows for it."""
        named = [p for p in self._rows if p.name in intent.publications]
        for publication in named:
            assert work.rows is not None
            edition = intent.editions.get(publication.name, Edition())
            rows = publication.rows(work.rows, intent.watermark_before, edition)
            folder = f"{work.name}-{work.attempt}-{publication.name}"
            target = f"{self._log.folder(PUBLISHED)}/{folder}"
            rows.coalesce(self._tasks).write.parquet(self._log.storage.spark_path(target))
            work.published += described(
                self._log, target, publication.name, publication.time_column
            )
        return bool(named)

    def unconsumed(self) -> int:
        """How many committed steps the slowest follower has not consumed; 0 if nobody waits."""
        slowest = self.passed()
        return 0 if slowest is None else self._log.commits_after(slowest)

    def passed(self) -> str | None:
        """The step up to which all waiting followers have consumed; None if nobody waits."""
        waiting = self._waiting_for()
        return min((c.consumed(self._log.stream) for c in waiting), default=None)

    def _waiting_for(self) -> list[Consumer]:
        """The followers that want rows, or have not consumed all published ones."""
        return [
            consumer
            for consumer in self._consumers
            if consumer.publication.wanted or self.published_for(consumer)
        ]

    def published_for(self, consumer: Consumer) -> bool:
        """Whether there are published files that a follower has not consumed."""
        consumed = consumer.consumed(self._log.stream)
        suffix = f"-{consumer.publication.name}"
        names = self._log.storage.names(self._log.folder(PUBLISHED))
        return any(name.endswith(suffix) and _step_of(name) > consumed for name in names)

    def clean(self) -> None:
        """Delete published files that their follower has consumed and does not retain."""
        with self._lock:
            folder = self._log.folder(PUBLISHED)
            for consumer in self._consumers:
                consumed = consumer.consumed(self._log.stream)
                in_use = {name.rsplit("/", 2)[1] for name in consumer.retained()}
                for name in self._log.storage.names(folder):
                    for_consumer = name.endswith(f"-{consumer.publication.name}")
                    if for_consumer and _step_of(name) <= consumed and name not in in_use:
                        self._log.storage.delete(f"{folder}/{name}")


def _step_of(folder: str) -> str:
    """The name of the step that a published folder is of.

    >>> _step_of("000000000007-flush-0a1b2c3d4e5f-panes"), _step_of("000000000007-0a1b2c3d4e5f-rows")
    ('000000000007-flush', '000000000007')
    """
    batch, kind, _ = folder.split("-", 2)
    return f"{batch}-{kind}" if kind == "flush" else batch


def described(log: StreamLog, target: str, publication: str, time_column: str) -> list[Entry]:
    """The manifest entries of published files that hold rows."""
    names = [f"{target}/{file}" for file in log.storage.names(target) if file.endswith(".parquet")]
    log.storage.settle_folder(target)
    entries = (_described(log, name, time_column) for name in names)
    return [{**entry, "publication": publication} for entry in entries if entry["rows"]]


def _described(log: StreamLog, name: str, time_column: str) -> Entry:
    storage = log.storage
    metadata = pq.ParquetFile(storage.path(name), filesystem=storage.filesystem).metadata
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    bounds = [_bounds(group, time_column) for group in groups]
    return {
        **storage.settled(name),
        "rows": metadata.num_rows,
        "first": min((low for low, _ in bounds if low is not None), default=None),
        "last": max((high for _, high in bounds if high is not None), default=None),
    }


def _bounds(group: Any, column: str) -> tuple[int | None, int | None]:
    """The least and the greatest value of a column in a row group; None if all are NULL."""
    for index in range(group.num_columns):
        chunk = group.column(index)
        if chunk.path_in_schema == column:
            has_bounds = chunk.statistics is not None and chunk.statistics.has_min_max
            return (chunk.statistics.min, chunk.statistics.max) if has_bounds else (None, None)
    raise LookupError(column)
