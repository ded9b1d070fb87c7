"""What a Spark task does in a stage of a step.

Of a stage of rows it reads its share of the files: it finds the members of the rows, shows what queries show of
them, and writes the rows that joins read into bucket files. Of a stage of joins it takes a range of
buckets, and computes the joins of a level one after the other. Of a stage of DISTINCT it takes a range of
hashes, and finds the rows that were not shown before.

A task holds one piece of a file at a time, or one of either side of a join.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from weft.kernel.failure import QueryFailure
from weft.kernel.network import Program, program
from weft.kernel.network.buckets import BUCKET, Pieces, Range, is_everywhere, met
from weft.kernel.network.distinct import unseen
from weft.kernel.network.lookups.looked_up import lookup_tables, with_lookups
from weft.kernel.network.lookups.tables import LookupTable
from weft.kernel.network.partners import Watermarks, show_rows
from weft.kernel.network.passing import TOO_LARGE, Kept, Passage
from weft.kernel.network.program import Input, PhysicalNode
from weft.kernel.network.rows import TableRows
from weft.kernel.network.state import EMITTED
from weft.kernel.network.step import stored_rows
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.network.history import row_pieces
from weft.runtime.network.lanes.bucket_files import InputPieces, input_key, tables_in
from weft.runtime.network.lanes.node_rows import NodeRows
from weft.runtime.network.lanes.results import MEMORY, ShownRows
from weft.runtime.network.lanes.stage import Stage, decoded
from weft.runtime.tables import absent_bits
from weft.runtime.tasks import Output, task_attempt

_LARGE_HASHES = 1 << 16
"""How many hashes are compared with new ones at once."""


def run_task(payload: str, number: int) -> Iterator[Output]:
    """Do the part of one task in a stage. `payload`: the checkpoint, and the name of the stage's file."""
    checkpoint, name = payload.split("\n")
    return Task(decoded(Storage(checkpoint).read(name).decode()), number).run()


@lru_cache(maxsize=8)
def _compiled(
    checkpoint: str, log: str, version: int, checksum: int, queries: tuple[str, ...] | None
) -> Program:
    """The program of a plan. A process that runs several tasks compiles it once."""
    plan = StreamLog(Storage(checkpoint), log).network(version)
    if queries is not None:
        others = {query.id for query in plan.queries} - set(queries)
        plan = plan.without(others, version)
    return program(plan)


class Task:
    """One task of a stage."""

    def __init__(self, stage: Stage, number: int) -> None:
        self._stage, self._number, self._around = stage, number, stage.around
        around = stage.around
        self._log = StreamLog(Storage(around.checkpoint), around.log)
        self._storage = self._log.storage
        self._program = _compiled(
            around.checkpoint,
            around.log,
            around.plan_version,
            self._log.plan_checksum(around.plan_version),
            around.queries,
        )
        self._range = Range.shares(around.weights)[number]
        self._suffix = f"{stage.number}-{number}-{task_attempt()}"
        self._shown = ShownRows(around, self._log, self._suffix)
        self._passage = Passage(self._program, around.from_steps, around.limits, emits=stage.emits)
        self._outputs: list[Output] = []
        self._started = time.perf_counter()

    def run(self) -> Iterator[Output]:
        """Do it; what the driver must know."""
        work = {"rows": self._rows, "joins": self._joins, "distinct": self._distinct}
        try:
            work[self._stage.kind]()
        except QueryFailure as failure:
            if failure.error_class != TOO_LARGE:  # the driver adds up what tasks have counted
                body = [failure.error_class, failure.message, list(failure.queries)]
                yield "failure", body
        yield from self._outputs
        yield from self._shown.close()
        yield "counters", vars(self._passage.counters)
        yield "lane", {"lane": self._number, "seconds": time.perf_counter() - self._started}

    # rows

    def _rows(self) -> None:
        shares = self._stage.shares[self._number]
        for name in dict.fromkeys(share.node for share in shares):
            node = self._program.node_by_id[name]
            size = max(1 << 10, self._around.piece_bytes // (16 * (len(node.stored) + 4)))
            rows = self._rows_of(node)
            for share in shares:
                if share.node == name:
                    part, parts = share.part, share.parts
                    for table in row_pieces(self._storage, share.entry, size, part, parts):
                        self._read(node, table, rows)
            self._outputs += rows.close()

    def _rows_of(self, node: PhysicalNode) -> NodeRows:
        return NodeRows(self._stage, self._log, self._program, node, self._number, self._suffix)

    def _read(self, node: PhysicalNode, table: pa.Table, rows: NodeRows) -> None:
        if node.join is not None:
            rows.add(stored_rows(node, table))
            return
        before, new_rows = self._around.watermark_before, TableRows(table)
        looked_up = with_lookups(self._passage, node, new_rows, self._tables)
        self._take_over(rows, self._passage.of_relation(node, looked_up, before, new_rows))

    @cached_property
    def _tables(self) -> Mapping[str, LookupTable]:
        """The tables that lookups read, whole."""
        nodes = [node for node in self._program.nodes if node.lookups]
        names = {name for node in nodes for name in node.tables}
        files = {name: entry["name"] for name, entry in self._around.tables.items()}
        contents = {name: self._storage.read_table(files[name]) for name in sorted(names)}
        absent = absent_bits(contents.values())
        return lookup_tables(nodes, contents, absent, self._around.limits)

    def _take_over(self, rows: NodeRows, blocks: Iterable[Kept | None]) -> None:
        """Write what becomes of blocks of rows, one after the other."""
        for kept in blocks:
            if kept is not None:
                rows.add(kept)
            self._shown.take(self._program, self._passage)

    # joins

    def _joins(self) -> None:
        for name in self._stage.nodes:
            node = self._program.node_by_id[name]
            assert node.join is not None
            left, right = self._pieces(node.join.left), self._pieces(node.join.right)
            rows = self._rows_of(node)
            if node.join.kind == "join":
                self._take_over(rows, met(self._passage, node, left, right))
            else:
                watermarks = Watermarks(self._around.watermark_before, self._around.watermark)
                shown = show_rows(self._program, self._passage, node, left, right, watermarks)
                self._take_over(rows, shown)
            self._outputs += rows.close()

    def _pieces(self, entry: Input) -> Pieces:
        key = input_key(entry)
        share = None if is_everywhere(entry) else self._range

        def of(files: tuple[dict[str, object], ...]) -> InputPieces:
            mine = [file for file in files if file["input"] == key]
            size, ansi = self._around.piece_bytes, self._around.ansi
            return InputPieces(self._storage, entry, mine, share, size, ansi=ansi)

        return Pieces(of(self._stage.old), of(self._stage.new))

    # DISTINCT

    def _distinct(self) -> None:
        size = sum(entry["size"] for entry in self._stage.new) // self._around.tasks
        parts = 1 + 4 * size // self._around.piece_bytes
        for part, share in enumerate(self._range.parts(parts)):
            for name in sorted({entry["family"] for entry in self._stage.new}):
                files = [entry for entry in self._stage.new if entry["family"] == name]
                tables = list(tables_in(self._storage, files, share, self._around.piece_bytes))
                if tables:
                    self._show_new(name, pa.concat_tables(tables).drop_columns([BUCKET]), part)

    def _show_new(self, name: str, rows: pa.Table, part: int) -> None:
        """Show the rows of a result family that their queries have not shown before."""
        for memory in pc.unique(rows.column(MEMORY)).to_pylist():
            remembered = rows.filter(pc.equal(rows.column(MEMORY), memory))
            hashes = remembered.column(EMITTED).combine_chunks()
            chosen = unseen(hashes, self._hashes_of(memory))
            if not len(chosen):
                continue
            new = remembered.take(pa.array(chosen))
            self._shown.add_labelled(name, new.drop_columns([MEMORY, EMITTED]))
            folder = f"{self._log.folder('state')}/{self._around.folder}"
            file = f"{folder}/{memory}-{self._suffix}-{part}.parquet"
            entry = self._storage.write_table(file, new.select([EMITTED]))
            self._outputs.append(("history", {**entry, "distinct": memory}))

    def _hashes_of(self, memory: str) -> Iterator[pa.Array]:
        for entry in self._stage.old:
            if entry["distinct"] == memory:
                for table in row_pieces(self._storage, entry, _LARGE_HASHES):
                    yield table.column(EMITTED).combine_chunks()
