"""The files that a network lives on: published rows of its streams, rows of its joins, and what DISTINCT
queries have shown.

Published files become history by name: the commit retains them, nothing is copied. Rows of joins that
feed other joins are written once per step. When there are many files of one kind, they are written
together as one, in pieces, without the rows that nobody needs any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weft.algebra.predicates.slots import column_name
from weft.errors import CheckpointError
from weft.kernel.columns.column import column
from weft.kernel.columns.side_by_side import side_by_side
from weft.kernel.network import Program, admitted
from weft.kernel.network.joins.expiry import expiry_of
from weft.kernel.network.rows import STEP, TIME, ColumnRows
from weft.runtime.checkpoint.commits import RETAINED, STATE, Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage, TableFile
from weft.runtime.protocol.publishing import PUBLISHED

MOST_FILES = 64
"""How many files of one relation, join or query there may be before they are written together."""

_GROWTH = 3
"""A file is left alone if it has this many times the rows of all smaller ones."""
_WRITERS = 8
"""How many files of a step are written at a time."""
_PIECE = 1 << 16
"""How many rows of a file are in memory at once while files are written together."""

_SEVERAL = ""
"""In place of a table's version: rows of several versions."""

_INSTANT = pa.timestamp("us", tz="UTC")
"""The type of a TIMESTAMP, other than TIMESTAMP_NTZ."""

_ALL = -(1 << 63)
"""An admission that admits every row."""

Live = Mapping[str, Sequence[Entry]]


@dataclass(frozen=True)
class Published:
    """A file of rows that a stream published, and the step it came with."""

    relation: str
    sequence: int
    entry: Entry

    @staticmethod
    def kept(entry: Entry) -> Published:
        """A file of history, to be read like one that was published."""
        return Published(entry["relation"], entry["oldest"][entry["relation"]], entry)

    @property
    def with_step(self) -> Entry:
        """The file with the step that its rows came with, unless they say so themselves."""
        kept = "oldest" in self.entry
        return self.entry if kept else {**self.entry, "sequence": self.sequence}

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
    """The rows of files by relation, with the step they came with; of history, those that joins have
    admitted."""
    by_relation: dict[str, list[pa.Table]] = {}
    for file in files:
        rows = _admitted_rows(storage, file.with_step)
        by_relation.setdefault(file.relation, []).append(rows)
    return {relation: _together(tables) for relation, tables in by_relation.items()}


@dataclass(frozen=True)
class Restored:
    """All history in memory: admitted rows by relation, rows by physical join, hashes by query."""

    base: Mapping[str, Sequence[pa.Table]]
    joined: Mapping[str, Sequence[pa.Table]]
    shown: Mapping[str, Sequence[pa.Table]]
    stale: frozenset[str]
    """The physical joins that have rows with earlier contents of a table."""


def restored(storage: Storage, live: Live, versions: Mapping[str, str]) -> Restored:
    """Read all files of a commit's history. `versions` are those of the tables now."""
    parts: dict[str, dict[str, list[pa.Table]]] = {"relation": {}, "join": {}, "distinct": {}}
    entries = (*live.get(RETAINED, ()), *live.get(STATE, ()))
    for entry in entries:
        kind, name = kind_of(entry)
        parts[kind].setdefault(name, []).append(_admitted_rows(storage, entry))
    stale = stale_joins(entries, versions)
    base = {name: _in_one_zone(tables) for name, tables in parts["relation"].items()}
    return Restored(base, parts["join"], parts["distinct"], stale)


def stale_joins(entries: Iterable[Entry], versions: Mapping[str, str]) -> frozenset[str]:
    """The physical joins that have rows with other contents of a table than those of now."""
    return frozenset(
        entry["join"]
        for entry in entries
        for table, version in entry.get("tables", {}).items()
        if version != versions.get(table)
    )


def kind_of(entry: Entry) -> tuple[str, str]:
    """What a file of history belongs to: a relation, a physical join or a DISTINCT query."""
    kind = next(kind for kind in ("join", "distinct", "relation") if kind in entry)
    return kind, entry[kind]


def _rows(storage: Storage, entry: Entry) -> pa.Table:
    with _reading(storage, entry) as file:
        return _with_steps(_with_instants(file, file.read()), entry)


@contextmanager
def _reading(storage: Storage, entry: Entry) -> Iterator[pq.ParquetFile]:
    """A file of history. Microseconds hold all times that Spark has, nanoseconds those from 1677 to 2262."""
    try:
        with storage.reading(entry["name"], coerce_int96_timestamp_unit="us") as file:
            yield file
    except FileNotFoundError as error:
        raise _missing(entry) from error


def _with_instants(file: pq.ParquetFile, rows: pa.Table) -> pa.Table:
    """Rows with the zone of their instants. Spark writes TIMESTAMP as INT96 by default, which Arrow
    takes for a time without a zone."""
    for leaf in map(file.schema.column, range(len(file.schema))):
        if leaf.physical_type == "INT96" and leaf.path in rows.column_names:
            place = rows.column_names.index(leaf.path)
            if pa.types.is_timestamp(rows.column(place).type):
                rows = rows.set_column(place, leaf.path, rows.column(place).cast(_INSTANT))
    return rows


def _missing(entry: Entry) -> CheckpointError:
    return CheckpointError("DAMAGED", path=entry["name"], detail="the file is missing")


def _with_steps(rows: pa.Table, entry: Entry) -> pa.Table:
    """Rows of a published file with the step that they came with."""
    if "sequence" not in entry:
        return rows
    steps = pa.repeat(pa.scalar(entry["sequence"], pa.int64()), rows.num_rows)
    return rows.append_column(STEP, steps)


def _admitted_rows(storage: Storage, entry: Entry) -> pa.Table:
    return _only_admitted(_rows(storage, entry), entry)


def _only_admitted(rows: pa.Table, entry: Entry) -> pa.Table:
    return admitted(rows, entry["above"]) if entry.get("above", _ALL) != _ALL else rows


def row_pieces(
    storage: Storage, entry: Entry, size: int, part: int = 0, parts: int = 1
) -> Iterator[pa.Table]:
    """The rows of a file in pieces, those of a history only as far as joins have admitted them. Of a
    large file one may take a part of its row groups."""
    with _reading(storage, entry) as file:
        groups = [group for group in range(file.num_row_groups) if group % parts == part]
        for batch in file.iter_batches(size, row_groups=groups):
            rows = _with_instants(file, pa.table(batch))
            yield _only_admitted(_with_steps(rows, entry), entry)


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    """The rows of tables that may have different columns; missing ones are NULL."""
    return pa.concat_tables(_in_one_zone(tables), promote_options="default")


def _in_one_zone(tables: Sequence[pa.Table]) -> list[pa.Table]:
    """Tables of which none has a column without a zone that another one has with it. Files that weft wrote
    from Spark's before it minded the zone have such columns."""
    instants = {field.name for table in tables for field in table.schema if field.type == _INSTANT}
    return [_as_instants(table, instants) for table in tables]


def _as_instants(rows: pa.Table, names: set[str]) -> pa.Table:
    for place, field in enumerate(rows.schema):
        if field.name in names and field.type != _INSTANT and pa.types.is_timestamp(field.type):
            rows = rows.set_column(place, field.name, rows.column(place).cast(_INSTANT))
    return rows


def about_join(program: Program, join: str, rows: pa.Table, versions: Mapping[str, str]) -> Entry:
    """What a commit says about rows of a physical join: the steps of their oldest rows, the watermark at
    which nobody needs them, and the versions of the tables that they depend on."""
    node = program.node_by_id[join]
    oldest: dict[str, int] = {}
    for slot, relation in enumerate(program.bases(node)):
        step = pc.min(rows.column(column_name(slot, STEP))).as_py()
        oldest[relation] = min(step, oldest.get(relation, step))
    sides = program.stored_lifetimes(node)
    columns = {name: column(rows.column(name)) for name in rows.column_names if TIME in name}
    expires = expiry_of(sides, ColumnRows(columns, rows.num_rows))
    tables = {name: versions[name] for name in sorted(node.tables)}
    return {"join": join, "oldest": oldest, "expires": expires, "tables": tables}


def _about_relation(relation: str, rows: pa.Table) -> Entry:
    return {
        "relation": relation,
        "oldest": {relation: pc.min(rows.column(STEP)).as_py()},
        "last": pc.max(rows.column(TIME)).as_py(),
    }


def both(one: Entry | None, other: Entry) -> Entry:
    """What a commit says about the rows of two pieces together."""
    if one is None:
        return other
    result = {**one}
    if "oldest" in one:
        result["oldest"] = {
            relation: min(step, one["oldest"][relation])
            for relation, step in other["oldest"].items()
        }
    if "expires" in one:
        endless = None in (one["expires"], other["expires"])
        result["expires"] = None if endless else max(one["expires"], other["expires"])
    if "last" in one:
        known = [time for time in (one["last"], other["last"]) if time is not None]
        result["last"] = max(known, default=None)
    if "tables" in one and one["tables"] != other["tables"]:
        result["tables"] = dict.fromkeys(one["tables"], _SEVERAL)
    return result


def published_file(
    log: StreamLog, step: str, name: str, part: str, tables: Sequence[pa.Table]
) -> Entry:
    """Write rows of a derived stream for its follower. `step`: the step, and the attempt at it."""
    target = f"{log.folder(PUBLISHED)}/{step}-{name}/{part}.parquet"
    return {**log.storage.write_table(target, pa.concat_tables(tables)), "publication": name}


class HistoryFiles:
    """Writes the files of one step."""

    def __init__(
        self,
        log: StreamLog,
        step: str,
        attempt: str,
        program: Program,
        versions: Mapping[str, str],
    ) -> None:
        self._storage, self._program, self._versions = log.storage, program, versions
        self._folder = f"{log.folder('state')}/{step}-{attempt}"

    def joined(self, join: str, rows: pa.Table) -> Entry:
        """Write rows of a physical join."""
        entry = self._storage.write_table(f"{self._folder}/{join}.parquet", rows)
        return {**entry, **about_join(self._program, join, rows, self._versions)}

    def shown(self, memory: str, hashes: pa.Table) -> Entry:
        """Write the hashes of rows that DISTINCT has shown."""
        entry = self._storage.write_table(f"{self._folder}/{memory}.parquet", hashes)
        return {**entry, "distinct": memory}

    def all_of(self, joined: Mapping[str, pa.Table], shown: Mapping[str, pa.Table]) -> list[Entry]:
        """Write rows of joins, and hashes, several files at a time: for small ones the disk takes longer to
        make them durable than they take to write."""
        tasks = [partial(self.joined, join, rows) for join, rows in joined.items()]
        tasks += [partial(self.shown, memory, hashes) for memory, hashes in shown.items()]
        return side_by_side(lambda task: task(), tasks, _WRITERS)

    def compacted(self, entries: Sequence[Entry], watermark: int) -> list[Entry]:
        """The same history in fewer files, where there are too many. Files with the same columns are
        written together, the smallest ones first, until the next one is much larger: so a row is
        written a logarithmic number of times."""
        groups: dict[tuple[str, str], list[Entry]] = {}
        for entry in entries:
            groups.setdefault(kind_of(entry), []).append(entry)
        kept: list[Entry] = []
        for (kind, name), files in groups.items():
            if len(files) <= MOST_FILES:
                kept += files
                continue
            for number, alike in enumerate(self._alike(kind, files)):
                large, small = _parted(alike)
                kept += large
                if len(small) > 1:
                    kept += self._one(kind, name, number, small, watermark)
                else:
                    kept += small
        return kept

    def _alike(self, kind: str, files: Sequence[Entry]) -> list[list[Entry]]:
        """Files of a relation by their columns. A column that is missing in some would become NULL, and
        it would no longer be known which rows have it."""
        if kind != "relation":
            return [list(files)]
        alike: dict[frozenset[str], list[Entry]] = {}
        for entry in files:
            names = frozenset(self._schema(entry).names) - {STEP}
            alike.setdefault(names, []).append(entry)
        return list(alike.values())

    def _schema(self, entry: Entry) -> pa.Schema:
        with _reading(self._storage, entry) as file:
            return _with_instants(file, file.schema_arrow.empty_table()).schema

    def _one(
        self, kind: str, name: str, number: int, files: Sequence[Entry], watermark: int
    ) -> list[Entry]:
        """Some files as one, in pieces of bounded size, without rows that nobody needs any more."""
        empty = [_with_steps(self._schema(entry).empty_table(), entry) for entry in files]
        schema = _together(empty).schema
        needed = needed_after(self._program, name, watermark) if kind == "relation" else None
        about: Entry | None = None
        file: TableFile | None = None
        for entry in files:
            for rows in row_pieces(self._storage, entry, _PIECE):
                if needed is not None:
                    rows = rows.filter(pc.greater(rows.column(TIME), needed))
                if not rows.num_rows:
                    continue
                if file is None:
                    target = f"{self._folder}/{name}-{number}-compact.parquet"
                    file = TableFile(self._storage, target, schema)
                file.add(_together([schema.empty_table(), rows]).select(schema.names))
                about = both(about, self._about(kind, name, rows, entry))
        return [] if file is None or about is None else [{**file.close(), **about}]

    def _about(self, kind: str, name: str, rows: pa.Table, entry: Entry) -> Entry:
        if kind == "join":
            about = about_join(self._program, name, rows, self._versions)
            return {**about, "tables": entry.get("tables", about["tables"])}
        return {"distinct": name} if kind == "distinct" else _about_relation(name, rows)


def _parted(files: Sequence[Entry]) -> tuple[list[Entry], list[Entry]]:
    """The files that stay, and those that are written together: the smallest, until the next one is
    much larger than all of them, and as many as it takes to have few files."""
    by_size = sorted(files, key=lambda entry: -int(entry["rows"]))
    first, size = len(files), 0
    while first > 0 and (
        first >= MOST_FILES or size == 0 or by_size[first - 1]["rows"] <= _GROWTH * size
    ):
        first -= 1
        size += by_size[first]["rows"]
    return by_size[:first], by_size[first:]


def needed_after(program: Program, relation: str, watermark: int) -> int | None:
    """The event time up to which joins need no row of a stream any more; None if they need all."""
    span = program.span(relation)
    return None if span is None else watermark - span


def unexpired(entries: Iterable[Entry], program: Program, watermark: int) -> list[Entry]:
    """The files with rows that a join or a query of the program still needs."""
    return [entry for entry in entries if _is_needed(entry, program, watermark)]


def _is_needed(entry: Entry, program: Program, watermark: int) -> bool:
    kind, name = kind_of(entry)
    if kind == "distinct":
        return name in program.outputs
    if kind == "join":
        node = program.node_by_id.get(name)
        if node is None or not node.inputs:
            return False
        return entry["expires"] is None or entry["expires"] > watermark
    if not program.inputs_of(name):
        return False
    needed = needed_after(program, name, watermark)
    return needed is None or (entry["last"] is not None and entry["last"] > needed)
