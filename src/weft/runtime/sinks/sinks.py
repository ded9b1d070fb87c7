"""Where results go.

`store` and `parquet` write result families whose files a commit names: exactly once, and
`results(name)` reads them back. The others are handed a step's results before its commit and
may see a step again after a crash: they get the batch id, the query and a sequence number to
deduplicate by.

| sink | delivery | readable by results() |
|---|---|---|
| store, parquet | exactly once | yes |
| memory | exactly once within a process | yes |
| console, callback, spark | at least once | no |
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.errors import RunError
from weft.kernel.columns.side_by_side import THREADS, side_by_side
from weft.kernel.windows.results import QUERY_COLUMN
from weft.runtime.protocol.commits import Entry
from weft.runtime.protocol.storage import Storage

_ROWS_WORTH_A_FILE = 100_000

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


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
    families: dict[str, pa.Table]
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


class ResultStore:
    """Result families as Parquet files, sorted by query."""

    def __init__(self, root: str | None = None, owner: str = "") -> None:
        self._storage: Storage | None = Storage(root) if root else None
        self.root = self._storage.uri if self._storage else None
        self.owner = owner

    @property
    def name(self) -> str:
        return f"parquet({self.root!r})" if self.root else "result store"

    def bind(self, checkpoint: Storage, owner: str) -> None:
        """Place the store inside the checkpoint unless it has a folder of its own. Files are
        named after their owner, so several checkpoints may write to one folder."""
        self.owner = owner
        if self.root is None:
            self._storage = Storage(results_folder(checkpoint))

    @property
    def place(self) -> str:
        """The store's folder as manifests name it: nothing for the one in the checkpoint, so
        that a checkpoint can be moved."""
        return self.root or ""

    @property
    def storage(self) -> Storage:
        assert self._storage is not None, "the store is bound when a run starts"
        return self._storage

    def write(self, results: StepResults) -> list[Entry]:
        """One file per family; a large one in two parts, written side by side."""

        def put(file: tuple[str, str, pa.Table]) -> Entry:
            family, part, table = file
            name = self.file_name(results.stream, results.step, results.attempt, family, part)
            return self.write_file(name, family, results.batch, table)

        files = [
            (family, part, rows)
            for family, table in results.families.items()
            if table.num_rows
            for part, rows in _parts(_clustered(table))
        ]
        return side_by_side(put, files)

    def file_name(self, stream: str, step: str, attempt: str, family: str, part: str = "") -> str:
        return f"{family}/{self.prefix(stream)}{step}~{attempt}{part}.parquet"

    def prefix(self, stream: str) -> str:
        """What the names of a stream's files begin with."""
        return f"{self.owner}~{stream}~"

    def own_files(self, stream: str, step: str) -> list[str]:
        """All files of a stream's step in this store, committed or not."""
        beginning = f"{self.prefix(stream)}{step}~"
        return [
            f"{family}/{name}"
            for family in self.storage.names("")
            for name in self.storage.names(family)
            if name.startswith(beginning)
        ]

    def write_file(self, name: str, family: str, batch: int, table: pa.Table) -> Entry:
        batches = pa.DictionaryArray.from_arrays(
            np.zeros(table.num_rows, np.int32), pa.array([batch], pa.int64())
        )
        entry = self.storage.write_table(name, table.append_column("batch", batches))
        return {**entry, "family": family, "root": self.place, "batch": batch}


def _parts(table: pa.Table) -> list[tuple[str, pa.Table]]:
    """A table as it is, or in pieces if each is still a large file, with a suffix for each."""
    count = min(THREADS, table.num_rows // _ROWS_WORTH_A_FILE)
    if count < 2:
        return [("", table)]
    size = -(-table.num_rows // count)
    return [(f"-{i}", table.slice(i * size, size)) for i in range(count)]


def _clustered(table: pa.Table) -> pa.Table:
    """The rows with those of each query together, as those of one shape are already, and the
    query as a dictionary."""
    encoded = table.column(QUERY_COLUMN).combine_chunks().dictionary_encode()
    indices = encoded.indices.to_numpy()
    place = table.schema.get_field_index(QUERY_COLUMN)
    table = table.set_column(place, QUERY_COLUMN, encoded)
    together = int((indices[1:] != indices[:-1]).sum()) < len(encoded.dictionary)
    return table if together else table.take(np.argsort(indices, kind="stable"))


def results_folder(checkpoint: Storage, place: str = "") -> str:
    """The folder of result files that a manifest places there."""
    return place or f"{checkpoint.uri}/results"


class MemorySink:
    """Results kept in this process, for tests and notebooks."""

    name = "memory"

    def __init__(self) -> None:
        self._steps: dict[tuple[str, str], dict[str, list[pa.Table]]] = {}

    def write(self, results: StepResults) -> list[Entry]:
        held: dict[str, list[pa.Table]] = {}
        for query, table in results.by_query():
            held.setdefault(query.id, []).append(table)
        self._steps[results.stream, results.step] = held
        return []

    def tables(self, query_id: str) -> list[pa.Table]:
        return [table for step in self._steps.values() for table in step.get(query_id, [])]


class ConsoleSink:
    """A few rows of every query with results, per step."""

    name = "console"

    def __init__(self, rows: int = 5, stream: TextIO | None = None) -> None:
        self._rows, self._stream = rows, stream

    def write(self, results: StepResults) -> list[Entry]:
        from rich.console import Console
        from rich.table import Table

        console = Console(file=self._stream or sys.stdout)
        for query, table in results.by_query():
            shown = Table(title=f"{query.name}, batch {results.batch}: {table.num_rows} rows")
            for column in table.column_names:
                shown.add_column(column)
            for row in table.slice(0, self._rows).to_pylist():
                shown.add_row(*(str(value) for value in row.values()))
            console.print(shown)
        return []


class CallbackSink:
    """A Python function per query and batch: `function(query name, Arrow table, batch id)`."""

    def __init__(self, function: Callable[[str, pa.Table, int], Any]) -> None:
        self._function = function
        self.name = f"callback({getattr(function, '__name__', 'function')})"

    def write(self, results: StepResults) -> list[Entry]:
        for query, table in results.by_query():
            self._function(query.name, table, results.batch)
        return []


class SparkSink:
    """Any format Spark can write: one append per query and batch.

    Rows carry `weft_batch`, `weft_query` and `weft_seq` to deduplicate by. A `path` option
    with `{query}` in it is filled with the query's name; without it all queries with the same
    columns go to the same place.
    """

    def __init__(self, format: str, *, mode: str = "append", **options: Any) -> None:
        self._format, self._mode, self._options = format, mode, options
        self.name = f"spark({format!r})"

    def write(self, results: StepResults) -> list[Entry]:
        for query, table in results.by_query():
            count = table.num_rows
            tagged = table.append_column(
                "weft_batch", pa.repeat(pa.scalar(results.batch, pa.int64()), count)
            )
            tagged = tagged.append_column("weft_query", pa.repeat(query.name, count))
            tagged = tagged.append_column("weft_seq", pa.array(range(count), pa.int64()))
            options = {
                key: value.replace("{query}", query.name) if isinstance(value, str) else value
                for key, value in self._options.items()
            }
            frame: DataFrame = results.spark.createDataFrame(tagged)
            frame.write.format(self._format).mode(self._mode).options(**options).save()
        return []


def _in_fixed_order(table: pa.Table) -> pa.Table:
    """Rows sorted by all columns that can be compared: the same in every delivery."""
    nested = (pa.types.is_struct, pa.types.is_list)
    keys = [
        (field.name, "ascending")
        for field in table.schema
        if not any(is_nested(field.type) for is_nested in nested)
    ]
    return table.sort_by(keys) if keys else table


@dataclass
class RouteSink:
    """Single queries to sinks of their own, all others to the default."""

    routes: Mapping[str, Sink]
    default: Sink = field(default_factory=ResultStore)

    @property
    def name(self) -> str:
        return f"route({', '.join(self.routes)}; else {self.default.name})"

    def write(self, results: StepResults) -> list[Entry]:
        """Every destination once, however many routes lead to it: a step has one file there."""
        sinks: dict[object, Sink] = {}
        names: dict[object, set[str]] = {}
        for query in results.queries.values():
            sink = destination(self, query.name)
            place = sink.place if isinstance(sink, ResultStore) else id(sink)
            sinks.setdefault(place, sink)
            names.setdefault(place, set()).add(query.name)
        written = [sink.write(results.only(names[at].__contains__)) for at, sink in sinks.items()]
        return [entry for entries in written for entry in entries]


def destination(sink: Sink, query: str) -> Sink:
    """The sink that a query's results go to, through all routes."""
    while isinstance(sink, RouteSink):
        sink = sink.routes.get(query, sink.default)
    return sink


def stores_of(sink: Sink) -> list[ResultStore]:
    """The result stores in a sink."""
    if isinstance(sink, ResultStore):
        return [sink]
    if isinstance(sink, RouteSink):
        inner = (sink.default, *sink.routes.values())
        return [store for each in inner for store in stores_of(each)]
    return []


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
            detail=f"{type(error).__name__}: {error}",
        ) from error


def store() -> ResultStore:
    """The result store inside the checkpoint (the default)."""
    return ResultStore()


def parquet(path: str) -> ResultStore:
    """Result families under a folder of your own."""
    return ResultStore(path)


def memory() -> MemorySink:
    """Results in this process."""
    return MemorySink()


def console(rows: int = 5) -> ConsoleSink:
    """The first rows of every query and batch on standard output."""
    return ConsoleSink(rows)


def callback(function: Callable[[str, pa.Table, int], Any]) -> CallbackSink:
    """`function(query name, Arrow table, batch id)` for every query and batch."""
    return CallbackSink(function)


def spark(format: str, *, mode: str = "append", **options: Any) -> SparkSink:
    """Any Spark sink format, e.g. `spark("json", path="out/{query}")`."""
    return SparkSink(format, mode=mode, **options)


def route(routes: Mapping[str, Sink], default: Sink | None = None) -> RouteSink:
    """Single queries to sinks of their own."""
    return RouteSink(routes, default or ResultStore())
