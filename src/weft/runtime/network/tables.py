"""Tables that join queries read: versions of their contents, kept in the checkpoint.

A table is read when a run first needs it, and the run keeps what it read until it ends. The contents are
stored under a name that depends on them alone, and a step's intent names the version that it uses. So
a step that runs again joins the same rows, and a run that starts later sees a changed table from its
first step on. Matches that were emitted before are not taken back.

What only Spark can compute of a table's rows (`bits`) is stored beside them, and what it computes of a row of
NULLs: for rows of a stream without a match. A query that needs more of it makes another version of the same
contents.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from weft.algebra import codec
from weft.algebra.network.bits import Bit
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.frames import frame_of

_FOLDER = "tables"
_ABSENT = b"weft.absent"
"""The metadata of a file that holds what Spark computes of a row of NULLs."""
Bits = Mapping[str, Sequence[Bit]]
"""For each table what Spark must compute of its rows."""


class TableVersions:
    """The tables of one run."""

    def __init__(self, storage: Storage, frames: Callable[[], Mapping[str, DataFrame]]) -> None:
        self._storage, self._frames = storage, frames
        self._contents: dict[str, tuple[str, pa.Table]] = {}
        """What the run has read of each table, and the name of these contents."""
        self._rows: dict[str, pa.Table] = {}

    def versions(self, bits: Bits) -> dict[str, str]:
        """The version of each table that the run uses."""
        return {name: self._version(name, computed) for name, computed in bits.items()}

    def _version(self, name: str, bits: Sequence[Bit]) -> str:
        if name not in self._contents:
            rows = _in_order(self._frames()[name].toArrow())
            self._contents[name] = (f"{name}-{_digest(rows)}", rows)
        version, rows = self._contents[name]
        if bits:
            version = f"{version}-{codec.digest(sorted(bit.name for bit in bits))}"
        path = f"{_FOLDER}/{version}.parquet"
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
        if version not in self._rows:
            self._rows[version] = self._storage.read_table(f"{_FOLDER}/{version}.parquet")
        return self._rows[version]

    def entries(self, versions: Mapping[str, str]) -> dict[str, Entry]:
        """By table, the file of the version in use, as tasks read it."""
        return {
            name: {"name": path, "size": self._storage.size(path), "relation": name}
            for name, version in versions.items()
            for path in [f"{_FOLDER}/{version}.parquet"]
        }

    def keep_only(self, versions: Iterable[str]) -> None:
        """Delete the versions that no step can need any more."""
        kept = {f"{version}.parquet" for version in versions}
        for name in self._storage.names(_FOLDER):
            if name not in kept:
                self._storage.delete(f"{_FOLDER}/{name}")


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
