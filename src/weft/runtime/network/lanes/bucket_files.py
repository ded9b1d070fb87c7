"""The files in which rows come to the joins: those of one input, in the order of their buckets.

A file is written in pieces, each sorted by bucket and cut into small row groups. A task reads only the row
groups that its range of buckets meets, whatever number of tasks there was when the file was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from weft.kernel.columns.column import column
from weft.kernel.network.buckets import BUCKET, Range, bucketed, piece
from weft.kernel.network.joins.expiry import expiry_of
from weft.kernel.network.joins.history import Chunk
from weft.kernel.network.passing import Kept
from weft.kernel.network.program import Input, PhysicalNode
from weft.kernel.network.rows import TIME, ColumnRows
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.storage import Storage, TableFile
from weft.runtime.network.history import both

GROUP_ROWS = 1 << 15


def input_key(entry: Input) -> str:
    """The name of an input in manifests."""
    return f"{entry.join}-{'left' if entry.left else 'right'}"


class PieceFiles:
    """Files written in pieces, which are sorted by bucket if they have a column of buckets. A piece with
    other columns, or other types of them, begins another file."""

    def __init__(self, storage: Storage, name: str, buffer_bytes: int) -> None:
        self._storage, self._name, self._buffer = storage, name, buffer_bytes
        self._waiting: list[pa.Table] = []
        self._bytes = 0
        self._file: TableFile | None = None
        self._about: Entry | None = None
        self._closed: list[Entry] = []

    def add(self, table: pa.Table, about: Entry) -> None:
        """Add rows, and what the manifest says about them."""
        self._waiting.append(table)
        self._about = both(self._about, about)
        self._bytes += table.nbytes
        if self._bytes >= self._buffer:
            self._flush()

    def _flush(self) -> None:
        if not self._waiting:
            return
        table = pa.concat_tables(self._waiting, promote_options="default")
        if BUCKET in table.column_names:
            table = table.sort_by(BUCKET)
        self._waiting, self._bytes = [], 0
        if self._file is not None and self._file.schema != table.schema:
            self._end()
        if self._file is None:
            name = f"{self._name}-{len(self._closed)}.parquet"
            self._file = TableFile(self._storage, name, table.schema)
        self._file.add(table, GROUP_ROWS)

    def _end(self) -> None:
        if self._file is not None:
            self._closed.append({**self._file.close(), **(self._about or {})})
            self._file = None

    def close(self) -> list[Entry]:
        """The manifest entries of all files."""
        self._flush()
        self._end()
        return self._closed


class InputWriter:
    """Writes the new rows of one input."""

    def __init__(
        self, files: PieceFiles, node: PhysicalNode, entry: Input, salt: int, *, ansi: bool
    ) -> None:
        self._files, self._node, self._entry = files, node, entry
        self._salt, self._ansi = salt, ansi

    def add(self, kept: Kept) -> None:
        table = bucketed(self._node, self._entry, kept, self._salt, ansi=self._ansi)
        if table is None:
            return
        self._salt += table.num_rows
        times = {name: column(table.column(name)) for name in table.column_names if TIME in name}
        expires = expiry_of([self._entry.lifetime], ColumnRows(times, table.num_rows))
        self._files.add(table, {"input": input_key(self._entry), "expires": expires})

    def close(self) -> list[Entry]:
        return self._files.close()


def tables_in(
    storage: Storage, files: Sequence[Entry], share: Range | None, piece_bytes: int
) -> Iterator[pa.Table]:
    """The rows of files whose buckets are in a range, in pieces. None: all rows."""
    waiting: list[pa.Table] = []
    size = 0
    for entry in files:
        with storage.reading(entry["name"]) as file:
            place = file.schema_arrow.get_field_index(BUCKET)
            for group in range(file.num_row_groups):
                bounds = file.metadata.row_group(group).column(place).statistics
                if share is not None and (bounds.max < share.first or bounds.min >= share.end):
                    continue
                rows = file.read_row_group(group)
                if share is not None and (bounds.min < share.first or bounds.max >= share.end):
                    buckets = rows.column(BUCKET)
                    inside = pc.and_(
                        pc.greater_equal(buckets, share.first), pc.less(buckets, share.end)
                    )
                    rows = rows.filter(inside)
                if not rows.num_rows:
                    continue
                waiting.append(rows)
                size += rows.nbytes
                if size >= piece_bytes:
                    yield pa.concat_tables(waiting, promote_options="default")
                    waiting, size = [], 0
    if waiting:
        yield pa.concat_tables(waiting, promote_options="default")


class InputPieces:
    """The rows of an input in a range of buckets, as chunks that can be gone through again. A single
    one stays in memory; several are read again."""

    def __init__(
        self,
        storage: Storage,
        entry: Input,
        files: Sequence[Entry],
        share: Range | None,
        piece_bytes: int,
        *,
        ansi: bool,
    ) -> None:
        self._storage, self._entry, self._files = storage, entry, files
        self._share, self._piece_bytes, self._ansi = share, piece_bytes, ansi
        self._all: list[Chunk] | None = None

    def __iter__(self) -> Iterator[Chunk]:
        if self._all is not None:
            yield from self._all
            return
        first: Chunk | None = None
        count = 0
        for table in tables_in(self._storage, self._files, self._share, self._piece_bytes):
            chunk = piece(self._entry, table, ansi=self._ansi)
            first, count = (chunk if count == 0 else None), count + 1
            yield chunk
        if count < 2:
            self._all = [] if first is None else [first]
