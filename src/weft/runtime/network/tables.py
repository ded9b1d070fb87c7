"""Tables that join queries read: versions of their contents, kept in the checkpoint.

A table is read when a run first needs it, and the run keeps what it read until it ends. The contents are
stored under a name that depends on them alone, and a step's intent names the version that it uses. So
a step that runs again joins the same rows, and a run that starts later sees a changed table from its
first step on. Matches that were emitted before are not taken back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.storage import Storage

_FOLDER = "tables"


class TableVersions:
    """The tables of one run."""

    def __init__(self, storage: Storage, frames: Callable[[], Mapping[str, DataFrame]]) -> None:
        self._storage, self._frames = storage, frames
        self._versions: dict[str, str] = {}
        self._rows: dict[str, pa.Table] = {}

    def versions(self, names: Iterable[str]) -> dict[str, str]:
        """The version of each table that the run uses."""
        return {name: self._version(name) for name in names}

    def _version(self, name: str) -> str:
        if name not in self._versions:
            rows = _in_order(self._frames()[name].toArrow())
            version = f"{name}-{_digest(rows)}"
            self._versions[name], self._rows[version] = version, rows
        version = self._versions[name]
        path = f"{_FOLDER}/{version}.parquet"
        if not self._storage.exists(path):
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
    sink: Any = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())
    digest.update(sink.getvalue())
    return digest.hexdigest()[:16]
