"""A micro-batch of a fallback, to its sink.

Into a result store its rows are written by Spark's tasks and made visible by one commit: exactly
once, since a batch that is committed already is skipped when Spark runs it again after a crash.
Other sinks get the rows as those of shared queries, at least once.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from weft.catalog.store import QueryRecord
from weft.errors import CheckpointError
from weft.kernel.windows.results import QUERY_COLUMN, output_names
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.failpoints import reach
from weft.runtime.checkpoint.spark_checkpoint import SparkCheckpoint
from weft.runtime.fallbacks.log import BatchCommit, FallbackLog
from weft.runtime.sinks.delivery import Sink, StepResults, deliver
from weft.runtime.sinks.resultfiles import tidied
from weft.runtime.sinks.store import ResultStore, wall_clock

BATCH_COLUMN = "batch"
BASE_EVERY = 50


@dataclass(frozen=True)
class _Column:
    name: str


@dataclass(frozen=True)
class _Plain:
    """A fallback as sinks see a query."""

    id: str
    name: str
    columns: tuple[_Column, ...]


class Batches:
    """Hands the micro-batches of one fallback to its sink."""

    def __init__(
        self,
        record: QueryRecord,
        log: FallbackLog,
        sink: Sink,
        *,
        owner: str,
        keep: int | None,
        tries: int,
        pause_seconds: float,
    ) -> None:
        self._record, self._log, self._sink = record, log, sink
        self._owner, self._keep = owner, keep
        self._tries, self._pause_seconds = tries, pause_seconds
        self._spark_checkpoint = SparkCheckpoint(log.storage, log.spark_folder, record.name)

    def prepare(self, schema: str) -> None:
        """Before the query starts: note its columns, and delete what an attempt that was not
        committed has left."""
        self._log.put_schema(json.loads(schema))
        if isinstance(self._sink, ResultStore):
            _remove_orphans(self._log, self._sink, self._owner)

    def write(self, rows: DataFrame, batch: int) -> None:
        if isinstance(self._sink, ResultStore):
            self._store(rows, batch, self._sink)
        else:
            self._deliver(rows, batch)

    def _store(self, rows: DataFrame, batch: int, store: ResultStore) -> None:
        last = self._log.last()
        query, offsets = self._spark_checkpoint.query, self._spark_checkpoint.offsets(batch)
        if last is not None:
            if last.spark_query != query:
                detail = f"that of '{self._record.name}' belongs to another streaming query"
                raise CheckpointError("SPARK_CHECKPOINT", detail=detail)
            if batch == last.batch and offsets == last.offsets:
                return
            if batch <= last.batch:
                detail = f"Spark wants to run batch {batch} of '{self._record.name}' again; "
                detail += f"weft has committed up to batch {last.batch}"
                raise CheckpointError("SPARK_CHECKPOINT", detail=detail)
        attempt = uuid.uuid4().hex[:12]
        folder = f"{self._log.results_folder(self._owner)}/{batch:012d}~{attempt}"
        entries = write_rows(rows, store, folder, self._record.id, batch)
        reach("fallback_results")
        commit = BatchCommit(
            batch,
            last.batch if last else None,
            query,
            offsets,
            tuple(entries),
            last.since_base + 1 if last else 0,
        )
        self._log.put(self._as_base(commit, attempt))
        reach("fallback_commit")
        self._log.prune()

    def _as_base(self, commit: BatchCommit, attempt: str) -> BatchCommit:
        """The commit with a list of all files before it, if it is time for one."""
        if commit.since_base < BASE_EVERY:
            return commit
        prefix = f"merged~{commit.batch:012d}~{attempt}"
        files = self._log.result_files()
        kept, gone = tidied(self._log.storage, files, prefix, self._keep)
        return BatchCommit(
            commit.batch,
            commit.previous,
            commit.spark_query,
            commit.offsets,
            commit.results,
            0,
            tuple(kept),
            tuple(gone),
        )

    def _deliver(self, rows: DataFrame, batch: int) -> None:
        table = rows.toArrow()
        names = tuple(_Column(name) for name in table.column_names)
        ids = pa.repeat(self._record.id, table.num_rows)
        family = pa.table([ids, *table.columns], names=output_names(len(names)))
        query = _Plain(self._record.id, self._record.name, names)
        results = StepResults(
            stream=self._record.id,
            step=str(batch),
            batch=batch,
            attempt="",
            families={"fallback": family} if table.num_rows else {},
            queries={self._record.id: query},
            spark=rows.sparkSession,
        )
        deliver(self._sink, results, self._tries, self._pause_seconds)


def write_rows(
    rows: DataFrame, store: ResultStore, folder: str, query_id: str, batch: int
) -> list[Entry]:
    """Write a batch from Spark's tasks in the form of all result files: the query, its columns by
    position, the batch."""
    names = output_names(len(rows.columns))[1:]
    frame = rows.toDF(*names).select(
        F.lit(query_id).alias(QUERY_COLUMN),
        *(F.col(name) for name in names),
        F.lit(batch).cast("bigint").alias(BATCH_COLUMN),
    )
    spark = rows.sparkSession
    # Spark's default for timestamps is a type that other readers take for one without a zone.
    # This session is the streaming query's own copy: the user's keeps its settings.
    spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    frame = frame.coalesce(max(1, spark.sparkContext.defaultParallelism))
    frame.write.mode("errorifexists").parquet(store.storage.spark_path(folder))
    store.storage.settle_folder(folder)
    family = folder.rsplit("/", 1)[0]
    entries = []
    for name in store.storage.names(folder):
        if name.endswith(".parquet"):
            entry = _described(store, f"{folder}/{name}")
            entry |= {"family": family, "root": store.place, "batch": batch}
            entries.append({**entry, "written": wall_clock()})
    return [entry for entry in entries if entry["rows"]]


def _described(store: ResultStore, name: str) -> Entry:
    """The size, checksum and rows of a file that Spark wrote, once it is on disk."""
    storage = store.storage
    metadata = pq.ParquetFile(storage.path(name), filesystem=storage.filesystem).metadata
    return {**storage.settled(name), "rows": metadata.num_rows}


def _remove_orphans(log: FallbackLog, store: ResultStore, owner: str) -> None:
    """Delete files in the fallback's own folder that no commit names."""
    named = {
        entry["name"]
        for entry in [*log.result_files(), *log.waiting_files()]
        if entry["root"] == store.place
    }
    folder = log.results_folder(owner)
    for name in store.storage.names(folder):
        path = f"{folder}/{name}"
        if not any(entry == path or entry.startswith(f"{path}/") for entry in named):
            store.storage.delete(path)
