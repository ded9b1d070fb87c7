"""The files of aggregation joins: published ones that are state by name, and those that a step writes itself.

A published file stays as long as an input may need something of it. When a stream has many of them, what they hold is written anew, one file for
each source, without what nobody needs. A query that emits changes has one more file: its last result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.joinagg.row_lifts import row_columns
from weft.algebra.joinagg.sets import PANES
from weft.algebra.joinagg.sources import Source
from weft.algebra.query import StreamSchema
from weft.errors import CheckpointError
from weft.kernel.columns.arrow import single
from weft.kernel.joinagg.panes import Panes, of_rows, of_set, of_state
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.joinagg.inputs import Inputs
from weft.runtime.joinagg.publication import BEFORE, TIME
from weft.runtime.joinagg.served import Key

MOST_FILES = 48
"""How many published files of a stream are kept before they are written anew."""


def retained(entry: Entry, relation: str, rows_of: Sequence[str]) -> Entry:
    """A published file as the follower's commit names it. `rows_of` are the sources that late rows were published for."""
    return {"sets": list(rows_of), **entry, "relation": relation}


def panes_in(storage: Storage, entries: Iterable[Entry], inputs: Inputs) -> dict[Key, list[Panes]]:
    """What files hold of the sources of some inputs."""
    found: dict[Key, list[Panes]] = {}
    for entry in entries:
        for key, panes in _panes(storage, entry, inputs):
            if len(panes):
                found.setdefault(key, []).append(panes)
    return found


def _panes(storage: Storage, entry: Entry, inputs: Inputs) -> Iterable[tuple[Key, Panes]]:
    wanted = [
        (key, source, inputs.stream(source))
        for key, source in inputs.sources.items()
        if holds(entry, key, source, inputs)
    ]
    if not wanted:
        return
    table = _read(storage, entry)
    if "source" in entry:
        ((key, source, stream),) = wanted
        yield key, of_state(table, source, stream)
        return
    for key, source, stream in wanted:
        finer = inputs.finer.get(source.id)
        yield key, _of_published(table, entry, source, finer, stream)


def _of_published(
    table: pa.Table, entry: Entry, source: Source, finer: Source | None, stream: StreamSchema
) -> Panes:
    if entry["publication"] == PANES:
        published = source if finer is None or source.id in entry["sets"] else finer
        chosen = table.filter(pc.equal(table.column("query"), published.id))
        panes = of_set(chosen, published, stream)
        return panes if published is source else panes.coarser(source, source.partials(stream))
    times, before = (single(table.column(name)).to_numpy() for name in (TIME, BEFORE))
    return of_rows(table, times, before, row_columns(source, stream), source, stream)


def holds(entry: Entry, key: Key, source: Source, inputs: Inputs) -> bool:
    """Whether a file may hold something of a source, or of the finer set that serves it."""
    if "source" in entry:
        return tuple(entry["source"]) == key
    if entry.get("relation") != source.relation:
        return False
    if (entry["publication"] == PANES) != (key[0] == "panes"):
        return False
    finer = inputs.finer.get(source.id)
    return source.id in entry["sets"] or (finer is not None and finer.id in entry["sets"])


def _read(storage: Storage, entry: Entry) -> pa.Table:
    try:
        return storage.read_table(entry["name"])
    except FileNotFoundError as error:
        raise CheckpointError("DAMAGED", path=entry["name"], detail="it is missing") from error


def needed(entries: Iterable[Entry], inputs: Inputs, horizons: Mapping[Key, int]) -> list[Entry]:
    """The files with something that may still count."""
    return [
        entry
        for entry in entries
        if any(
            holds(entry, key, source, inputs) and _last_end(entry, source) > horizons[key]
            for key, source in inputs.sources.items()
        )
    ]


def _last_end(entry: Entry, source: Source) -> int:
    """The end of the last pane that a file may hold."""
    if "end" in entry:
        return int(entry["end"])
    return int((entry["last"] // source.pane + 1) * source.pane)


@dataclass(frozen=True)
class StepFiles:
    """Writes the files of one step."""

    log: StreamLog
    folder: str

    def panes(self, key: Key, panes: Panes, inputs: Inputs) -> Entry:
        source = inputs.sources[key]
        table = panes.table(source.partials(inputs.stream(source)))
        entry = self._write(f"{key[0]}-{key[1][1:]}", table)
        return {**entry, "source": list(key), "end": int(panes.ends.max(initial=0))}

    def result(self, query_id: str, number: int, last: pa.Table) -> Entry:
        """The last result of a query that emits changes."""
        return {**self._write(f"last-{number}", last), "result_of": query_id}

    def _write(self, name: str, table: pa.Table) -> Entry:
        path = f"{self.log.folder('state')}/{self.folder}/{name}.parquet"
        return {**self.log.storage.write_table(path, table), "rows": table.num_rows}


def crowded(entries: Sequence[Entry]) -> set[str]:
    """The streams with too many published files."""
    counts: dict[str, int] = {}
    for entry in entries:
        if "relation" in entry:
            counts[entry["relation"]] = counts.get(entry["relation"], 0) + 1
    return {relation for relation, count in counts.items() if count > MOST_FILES}
