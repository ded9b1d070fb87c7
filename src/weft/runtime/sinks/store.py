"""Result families as Parquet files: the store inside a checkpoint, or a folder of the user's.

Files are invisible until a commit names them; every name carries the owner and the attempt.
"""

from __future__ import annotations

import time

import numpy as np
import pyarrow as pa

from weft.kernel.columns.side_by_side import THREADS, side_by_side
from weft.kernel.windows.results import QUERY_COLUMN
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.sinks.delivery import StepResults

_ROWS_WORTH_A_FILE = 100_000


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

    def files_by_step(self, stream: str) -> list[tuple[str, str]]:
        """All files that a stream's steps have written into this store, each with the name of its step. Merged files
        are not among them."""
        prefix = self.prefix(stream)
        files = [
            (f"{family}/{name}", name.removeprefix(prefix).split("~")[0])
            for family in self.storage.names("")
            for name in self.storage.names(family)
            if name.startswith(prefix)
        ]
        return [(name, step) for name, step in files if step[:1].isdigit()]

    def write_file(self, name: str, family: str, batch: int, table: pa.Table) -> Entry:
        batches = pa.DictionaryArray.from_arrays(
            np.zeros(table.num_rows, np.int32), pa.array([batch], pa.int64())
        )
        entry = self.storage.write_table(name, table.append_column("batch", batches))
        return {
            **entry,
            "family": family,
            "root": self.place,
            "batch": batch,
            "written": wall_clock(),
        }


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
    position = table.schema.get_field_index(QUERY_COLUMN)
    table = table.set_column(position, QUERY_COLUMN, encoded)
    together = int((indices[1:] != indices[:-1]).sum()) < len(encoded.dictionary)
    return table if together else table.take(np.argsort(indices, kind="stable"))


def wall_clock() -> int:
    """Now, in microseconds since 1970: when results were written, not when their events happened."""
    return int(time.time() * 1_000_000)


def results_folder(checkpoint: Storage, root: str = "") -> str:
    """The folder of the result files that a manifest has under a root; without one, the store's own."""
    return root or f"{checkpoint.uri}/results"
