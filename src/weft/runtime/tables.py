"""Tables that queries read: versions of their contents, kept in the checkpoint for all engines.

A table is read when a run first needs it, and the run keeps what it read until it ends. The contents are
stored under a name that depends on them alone, and a step's intent names the version that it uses. So
a step that runs again joins the same rows, and a run that starts later sees a changed table from its
first step on. Results that were emitted before are not taken back. A version stays as long as an intent that is
not committed names it, whichever log that is in.

What only Spark can compute of a table's rows (`bits`) is stored beside them, and what it computes of a row of
NULLs: for rows of a stream without a match. A query that needs more of it makes another version of the same
contents.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from weft.algebra import codec
from weft.algebra.network.bits import Bit
from weft.algebra.types import is_stored
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.frames import frame_of

_FOLDER = "tables"
_ABSENT = b"weft.absent"
"""The metadata of a file that holds what Spark computes of a row of NULLs."""
Bits = Mapping[str, Sequence[Bit]]
"""For each table what Spark must compute of its rows."""


class TableVersions:
    """The tables of one run. All engines of the run use it, each on its own thread."""

    def __init__(
        self,
        storage: Storage,
        frames: Callable[[], Mapping[str, DataFrame]],
        logs: Callable[[], Iterable[StreamLog]],
    ) -> None:
        self._storage, self._frames, self._logs = storage, frames, logs
        self._lock = threading.RLock()
        self._contents: dict[str, tuple[str, pa.Table]] = {}
        """What the run has read of each table, and the name of these contents."""
        self._rows: dict[str, pa.Table] = {}
        self._schemas: dict[str, pa.Schema] = {}
        self._given: dict[str, frozenset[str]] = {}
        """The versions that each log was given last. Their intent may not be written yet."""
        self._clean_with: frozenset[str] | None = None
        """The versions that were given when all others had gone: then there is nothing to look for."""

    def versions(self, log: str, bits: Bits) -> dict[str, str]:
        """The version of each table that the run uses, for the next intent of a log."""
        with self._lock:
            versions = {name: self._version(name, computed) for name, computed in bits.items()}
            self._given[log] = frozenset(versions.values())
        return versions

    def _version(self, name: str, bits: Sequence[Bit]) -> str:
        if name not in self._contents:
            rows = _in_order(_storable(self._frames()[name]).toArrow())
            self._contents[name] = (f"{_stem(name)}-{_digest(rows)}", rows)
        version, rows = self._contents[name]
        if bits:
            version = f"{version}-{codec.digest(sorted(bit.name for bit in bits))}"
        path = table_path(version)
        if not self._storage.exists(path):
            if bits:
                rows = _with_bits(self._frames()[name].sparkSession, rows, bits)
            self._rows[version] = rows
            sink = pa.BufferOutputStream()
            pq.write_table(self._rows[version], sink)
            self._storage.put(path, sink.getvalue().to_pybytes())
        return version

    def rows(self, version: str) -> pa.Table:
        """The contents of a version."""
        with self._lock:
            if version not in self._rows:
                self._rows[version] = self._storage.read_table(table_path(version))
            return self._rows[version]

    def frame(self, spark: SparkSession, version: str) -> DataFrame:
        """The contents of a version as Spark reads them, column by column as they are needed."""
        path = table_path(version)
        with self._lock:
            if version not in self._schemas:
                file = pq.ParquetFile(self._storage.path(path), filesystem=self._storage.filesystem)
                self._schemas[version] = file.schema_arrow
            schema = self._schemas[version]
        void = {field.name for field in schema if pa.types.is_null(field.type)}
        stored = pa.schema([field for field in schema if field.name not in void])
        fields = from_arrow_schema(stored, prefer_timestamp_ntz=True)
        frame = spark.read.schema(fields).parquet(self._storage.spark_path(path))
        return frame.select("*", *(F.lit(None).alias(name) for name in void)) if void else frame

    def entries(self, versions: Mapping[str, str]) -> dict[str, Entry]:
        """By table, the file of the version in use, as tasks read it."""
        return {
            name: {"name": path, "size": self._storage.size(path), "relation": name}
            for name, version in versions.items()
            for path in [f"{_FOLDER}/{version}.parquet"]
        }

    def clean(self) -> None:
        """Delete the versions that no step of any log can need any more."""
        with self._lock:
            given = frozenset[str]().union(*self._given.values())
            if given == self._clean_with:
                return
            stored = {name.removesuffix(".parquet") for name in self._storage.names(_FOLDER)}
            others = stored - given
            intents = (
                intent
                for log in (self._logs() if others else ())
                for intent in log.intents_after(log.last())
            )
            needed = {version for intent in intents for version in intent.tables.values()}
            for version in others - needed:
                self._storage.delete(f"{_FOLDER}/{version}.parquet")
                self._rows.pop(version, None)
                self._schemas.pop(version, None)
            self._clean_with = given if others.isdisjoint(needed) else None


def table_path(version: str) -> str:
    """The file with the contents of a version."""
    return f"{_FOLDER}/{version}.parquet"


def _stem(table: str) -> str:
    """What the names of a table's versions begin with. Spark does not read files that begin with `_`."""
    return f"table{table}" if table.startswith("_") else table


def absent_bits(tables: Iterable[pa.Table]) -> pa.Table | None:
    """What Spark computes of rows of NULLs, of all tables together: one row."""
    columns: dict[str, pa.ChunkedArray] = {}
    for table in tables:
        stored = (table.schema.metadata or {}).get(_ABSENT)
        if stored is not None:
            row = pa.ipc.open_stream(stored).read_all()
            columns |= dict(zip(row.column_names, row.columns, strict=True))
    return pa.table(columns) if columns else None


def _with_bits(spark: SparkSession, rows: pa.Table, bits: Sequence[Bit]) -> pa.Table:
    """The rows with what Spark computes of each of them, and of a row of NULLs."""
    if not bits:
        return rows
    nulls = pa.table({field.name: pa.nulls(1, field.type) for field in rows.schema})
    absent = _computed(spark, nulls, bits).select([bit.name for bit in bits])
    return _computed(spark, rows, bits).replace_schema_metadata({_ABSENT: _serialized(absent)})


def _computed(spark: SparkSession, rows: pa.Table, bits: Sequence[Bit]) -> pa.Table:
    added = [F.expr(bit.sql).alias(bit.name) for bit in bits]
    return frame_of(spark, rows).select("*", *added).toArrow()


def _serialized(rows: pa.Table) -> bytes:
    sink: Any = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())
    serialized: bytes = sink.getvalue().to_pybytes()
    return serialized


def _storable(frame: DataFrame) -> DataFrame:
    """The columns that can be kept. Queries that read others run alone."""
    others = [f.name for f in frame.schema if not is_stored(f.dataType.simpleString())]
    return frame.drop(*others) if others else frame


def _in_order(rows: pa.Table) -> pa.Table:
    """The rows sorted by their columns, so that the order in which Spark read them does not matter."""
    keys = [
        (field.name, "ascending")
        for field in rows.schema
        if not pa.types.is_nested(field.type) and not pa.types.is_null(field.type)
    ]
    return rows.sort_by(keys) if keys else rows


def _digest(rows: pa.Table) -> str:
    """A name for contents, equal for equal rows and columns."""
    digest = hashlib.sha256(str(rows.schema).encode())
    digest.update(_serialized(rows))
    return digest.hexdigest()[:16]
