"""What a task does with rows that queries show.

Rows with their output columns become result files at once, those of derived streams published files. Those of DISTINCT queries are written with a
hash, in buckets of it, for a stage that knows what was shown before. Rows that only Spark can project are
written as they are.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from weft.algebra.network.query import JoinQuery
from weft.kernel.network.buckets import BUCKET, hash_buckets
from weft.kernel.network.distinct import normal, row_hashes, unseen
from weft.kernel.network.output import Output as Shown
from weft.kernel.network.passing import Passage
from weft.kernel.network.program import Program
from weft.kernel.network.state import EMITTED
from weft.kernel.windows.program import family
from weft.kernel.windows.results import QUERY_COLUMN
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.network.history import published_file
from weft.runtime.network.lanes.bucket_files import PieceFiles
from weft.runtime.network.lanes.stage import Surroundings
from weft.runtime.network.projection import labelled, typed
from weft.runtime.sinks.store import ResultStore
from weft.runtime.tasks import Output

MEMORY = "#memory"
"""The column that says which DISTINCT a row is for."""


class ShownRows:
    """Writes what queries show. `suffix` makes names of files unique in the step."""

    def __init__(self, around: Surroundings, log: StreamLog, suffix: str) -> None:
        self._around, self._log, self._storage = around, log, log.storage
        self._store = ResultStore(around.results_root, around.owner)
        self._handoff = f"{log.folder('handoff')}/{around.folder}"
        self._suffix = suffix
        self._waiting: dict[str, list[pa.Table]] = {}
        self._derived: dict[str, list[pa.Table]] = {}
        self._bytes = 0
        self._distinct: dict[str, PieceFiles] = {}
        self._outputs: list[Output] = []
        self._files = 0

    def take(self, program: Program, passage: Passage) -> None:
        """Take over what a passage has shown."""
        for name, tables in passage.results.items():
            for table in tables:
                self.add(program.outputs[name], table)
        for name, tables in passage.raw.items():
            self._add_raw(name, tables)
        passage.results.clear()
        passage.raw.clear()

    def add(self, shown: Shown, rows: pa.Table) -> None:
        """Rows in the columns of their query."""
        if shown.query.members:
            self._add_derived(shown.query.name, typed(shown.query, rows))
        elif shown.memory is not None:
            self._add_distinct(shown.query, shown.memory, rows)
        else:
            self.add_labelled(family(shown.query.output_types), labelled(shown.query, rows))

    def _add_derived(self, name: str, table: pa.Table) -> None:
        if table.num_rows:
            self._derived.setdefault(name, []).append(table)
            self._count(table)

    def add_labelled(self, name: str, table: pa.Table) -> None:
        """Rows as their result family stores them."""
        if not table.num_rows:
            return
        self._waiting.setdefault(name, []).append(table)
        self._count(table)

    def _count(self, table: pa.Table) -> None:
        self._bytes += table.nbytes
        if self._bytes >= self._around.piece_bytes:
            self._flush()

    def _flush(self) -> None:
        around = self._around
        for name, tables in self._waiting.items():
            table = pa.concat_tables(tables).sort_by(QUERY_COLUMN)
            suffix = f"-{self._suffix}-{self._next()}"
            file = self._store.file_name(around.log, around.step, around.attempt, name, suffix)
            entry = self._store.write_file(file, name, around.sequence, table)
            self._outputs.append(("result", entry))
        for name, tables in self._derived.items():
            part = f"part-{self._suffix}-{self._next()}"
            entry = published_file(self._log, around.folder, name, part, tables)
            self._outputs.append(("published", entry))
        self._waiting, self._derived, self._bytes = {}, {}, 0

    def _next(self) -> int:
        self._files += 1
        return self._files

    def _add_distinct(self, query: JoinQuery, memory: str, rows: pa.Table) -> None:
        name = family(query.output_types)
        hashes = pa.array(row_hashes(rows), pa.binary(16))
        chosen = pa.array(unseen(hashes, ()))
        rows, hashes = labelled(query, normal(rows)).take(chosen), hashes.take(chosen)
        memories = pa.repeat(pa.scalar(memory, pa.string()), rows.num_rows)
        table = rows.append_column(MEMORY, memories).append_column(EMITTED, hashes)
        table = table.append_column(BUCKET, pa.array(hash_buckets(hashes)))
        if name not in self._distinct:
            target = f"{self._handoff}/distinct-{name}-{self._suffix}"
            buffer = self._around.piece_bytes
            self._distinct[name] = PieceFiles(self._storage, target, buffer)
        self._distinct[name].add(table, {"family": name})

    def _add_raw(self, output: str, tables: Iterable[pa.Table]) -> None:
        name = f"{self._handoff}/raw-{self._suffix}-{self._next()}.parquet"
        entry = self._storage.write_table(name, pa.concat_tables(tables))
        self._outputs.append(("raw", {**entry, "output": output}))

    def close(self) -> list[Output]:
        """What was written."""
        self._flush()
        for files in self._distinct.values():
            self._outputs += [("distinct", entry) for entry in files.close()]
        return self._outputs
