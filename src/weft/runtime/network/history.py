"""The files that a network lives on: published rows of its streams, rows of its joins, and what DISTINCT
queries have shown.

Published files become history by name: the commit retains them, nothing is copied. Rows of joins that
feed other joins are written once per step. When there are many files of one kind, they are written
together as one, without the rows that nobody needs any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.predicates.slots import column_name
from weft.errors import CheckpointError
from weft.kernel.columns.column import column
from weft.kernel.network import Program, admitted
from weft.kernel.network.expiry import expiry_of
from weft.kernel.network.rows import STEP, TIME, ColumnRows
from weft.runtime.checkpoint.commits import RETAINED, STATE, Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage

MOST_FILES = 64
"""How many files of one relation, join or query there may be before they are written together."""

_ALL = -(1 << 63)
"""An admission that admits every row."""

Live = Mapping[str, Sequence[Entry]]


@dataclass(frozen=True)
class Published:
    """A file of rows that a stream published, and the step it came with."""

    relation: str
    sequence: int
    entry: Entry

    def retained(self, watermark_before: int) -> Entry:
        """How a commit names the file as history: joins have admitted the rows above a watermark."""
        return {
            **self.entry,
            "relation": self.relation,
            "sequence": self.sequence,
            "oldest": {self.relation: self.sequence},
            "above": watermark_before,
        }


def delta(storage: Storage, files: Sequence[Published]) -> dict[str, pa.Table]:
    """The rows of files by relation, with the step they came with."""
    by_relation: dict[str, list[pa.Table]] = {}
    for file in files:
        entry = {**file.entry, "sequence": file.sequence}
        by_relation.setdefault(file.relation, []).append(_rows(storage, entry))
    return {relation: _together(tables) for relation, tables in by_relation.items()}


@dataclass(frozen=True)
class Restored:
    """All history in memory: admitted rows by relation, rows by physical join, hashes by query."""

    base: Mapping[str, Sequence[pa.Table]]
    joined: Mapping[str, Sequence[pa.Table]]
    shown: Mapping[str, Sequence[pa.Table]]


def restored(storage: Storage, live: Live) -> Restored:
    """Read all files of a commit's history."""
    parts: dict[str, dict[str, list[pa.Table]]] = {"relation": {}, "join": {}, "distinct": {}}
    for entry in (*live.get(RETAINED, ()), *live.get(STATE, ())):
        kind, name = _of(entry)
        parts[kind].setdefault(name, []).append(_admitted_rows(storage, entry))
    return Restored(parts["relation"], parts["join"], parts["distinct"])


def _of(entry: Entry) -> tuple[str, str]:
    """What a file of history belongs to."""
    kind = next(kind for kind in ("join", "distinct", "relation") if kind in entry)
    return kind, entry[kind]


def _rows(storage: Storage, entry: Entry) -> pa.Table:
    try:
        rows = storage.read_table(entry["name"])
    except FileNotFoundError as error:
        raise CheckpointError(
            "DAMAGED", path=entry["name"], detail="the file is missing"
        ) from error
    if "sequence" in entry:
        steps = pa.repeat(pa.scalar(entry["sequence"], pa.int64()), rows.num_rows)
        rows = rows.append_column(STEP, steps)
    return rows


def _admitted_rows(storage: Storage, entry: Entry) -> pa.Table:
    rows = _rows(storage, entry)
    return admitted(rows, entry["above"]) if entry.get("above", _ALL) != _ALL else rows


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of tables that may have different columns; missing ones are NULL."""
    return pa.concat_tables(tables, promote_options="default")


class HistoryFiles:
    """Writes the files of one step."""

    def __init__(self, log: StreamLog, step: str, attempt: str, program: Program) -> None:
        self._log, self._program = log, program
        self._folder = f"{log.folder('state')}/{step}-{attempt}"

    def joined(self, join: str, rows: pa.Table, suffix: str = "") -> Entry:
        """Write rows of a physical join."""
        node = self._program.node_by_id[join]
        oldest: dict[str, int] = {}
        for slot, relation in enumerate(node.relations):
            step = pc.min(rows.column(column_name(slot, STEP))).as_py()
            oldest[relation] = min(step, oldest.get(relation, step))
        sides = (entry.lifetime for entry in node.inputs)
        columns = {name: column(rows.column(name)) for name in rows.column_names if TIME in name}
        expires = expiry_of(sides, ColumnRows(columns, rows.num_rows))
        return self._write(
            join + suffix, rows, {"join": join, "oldest": oldest, "expires": expires}
        )

    def shown(self, query: str, hashes: pa.Table, suffix: str = "") -> Entry:
        """Write the hashes of rows that a DISTINCT query has shown."""
        return self._write(f"{query}{suffix}", hashes, {"distinct": query})

    def _write(self, name: str, rows: pa.Table, about: Mapping[str, Any]) -> Entry:
        entry = self._log.storage.write_table(f"{self._folder}/{name}.parquet", rows)
        return {**entry, **about}

    def compacted(self, entries: Sequence[Entry], watermark: int) -> list[Entry]:
        """The same history in fewer files, where there are too many."""
        groups: dict[tuple[str, str], list[Entry]] = {}
        for entry in entries:
            groups.setdefault(_of(entry), []).append(entry)
        kept: list[Entry] = []
        for (kind, name), files in groups.items():
            if len(files) <= MOST_FILES:
                kept += files
            else:
                rows = _together([_admitted_rows(self._log.storage, file) for file in files])
                kept += self._one(kind, name, rows, watermark)
        return kept

    def _one(self, kind: str, name: str, rows: pa.Table, watermark: int) -> list[Entry]:
        if kind == "join":
            return [self.joined(name, rows, "-compact")]
        if kind == "distinct":
            return [self.shown(name, rows, "-compact")]
        needed = needed_after(self._program, name, watermark)
        if needed is not None:
            rows = rows.filter(pc.greater(rows.column(TIME), needed))
        if not rows.num_rows:
            return []
        about = {
            "relation": name,
            "oldest": {name: pc.min(rows.column(STEP)).as_py()},
            "last": pc.max(rows.column(TIME)).as_py(),
        }
        return [self._write(f"{name}-compact", rows, about)]


def needed_after(program: Program, relation: str, watermark: int) -> int | None:
    """The event time up to which joins need no row of a stream any more; None if they need all."""
    span = program.span(relation)
    return None if span is None else watermark - span


def unexpired(entries: Iterable[Entry], program: Program, watermark: int) -> list[Entry]:
    """The files with rows that a join or a query of the program still needs."""
    return [entry for entry in entries if _is_needed(entry, program, watermark)]


def _is_needed(entry: Entry, program: Program, watermark: int) -> bool:
    kind, name = _of(entry)
    if kind == "distinct":
        return name in program.outputs
    node = program.node_by_id.get(name)
    if node is None or not node.inputs:
        return False
    if kind == "join":
        return entry["expires"] is None or entry["expires"] > watermark
    needed = needed_after(program, name, watermark)
    return needed is None or (entry["last"] is not None and entry["last"] > needed)
