"""The files of aggregation joins: published ones that are state by name, and those that a step writes itself.

A published file stays as long as an input may need something of it. When a stream has many of them, what they hold is written anew, one file for
each source, without what nobody needs. A query that emits changes has one more file: its last result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from weft.algebra.joinagg.row_lifts import row_columns
from weft.algebra.joinagg.sets import PANES
from weft.algebra.joinagg.sources import Source
from weft.algebra.network.query import BEFORE
from weft.algebra.query import StreamSchema
from weft.errors import CheckpointError
from weft.kernel.columns.arrow import single
from weft.kernel.joinagg.panes import Panes, of_rows, of_set, of_state
from weft.kernel.joinagg.served_panes import served_panes
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.joinagg.inputs import Inputs
from weft.runtime.joinagg.publication import TIME
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
        for key, panes in panes_of(storage, entry, inputs, inputs.sources):
            if len(panes):
                found.setdefault(key, []).append(panes)
    return found


def panes_of(
    storage: Storage, entry: Entry, inputs: Inputs, keys: Iterable[Key]
) -> Iterable[tuple[Key, Panes]]:
    """What one file holds of some sources."""
    wanted = [
        (key, inputs.sources[key], inputs.stream(inputs.sources[key]))
        for key in keys
        if holds(entry, key, inputs)
    ]
    if not wanted:
        return
    if "source" in entry:
        ((key, source, stream),) = wanted
        table = read(storage, entry, attributes=lambda name: not name.startswith("#"))
        yield key, of_state(table, source, stream)
    elif entry["publication"] == PANES:
        yield from _published(rows_by_set(read_panes(storage, entry)), wanted, inputs)
    else:
        for key, source, stream in wanted:
            names = row_columns(source, stream)
            columns = [TIME, BEFORE, *(made.name for made in names.all), *inputs.any_of[key]]
            attributes = {a.name for a in names.attributes} - {p.name for p in names.partials}
            table = read(storage, entry, columns, attributes.__contains__)
            times, before = (single(table.column(name)).to_numpy() for name in (TIME, BEFORE))
            any_of = inputs.any_of[key]
            yield key, of_rows(table, times, before, names, source, stream, any_of)


def _published(
    rows_of: Mapping[str, pa.Table],
    wanted: Sequence[tuple[Key, Source, StreamSchema]],
    inputs: Inputs,
) -> Iterable[tuple[Key, Panes]]:
    """What published sets hold of some sources."""
    served: dict[str, tuple[Source, list[Source]]] = {}
    key_of = {source.id: key for key, source, _ in wanted}
    for _, source, _ in wanted:
        finer = inputs.finer.get(source.id)
        provider = source if finer is None or source.id in rows_of else finer
        served.setdefault(provider.id, (provider, []))[1].append(source)
    for name, (provider, sources) in served.items():
        if name in rows_of:
            stream = inputs.stream(provider)
            panes = of_set(rows_of[name], provider, stream)
            for source, made in served_panes(panes, provider, sources, stream):
                yield key_of[source.id], made


def rows_by_set(table: pa.Table) -> dict[str, pa.Table]:
    """The rows of a file of panes by the set that they are of."""
    queries = single(table.column("query"))
    names, places = queries.dictionary.to_pylist(), queries.indices.to_numpy()
    if len(names) == 1:
        return {names[0]: table}
    order = np.argsort(places, kind="stable")
    bounds = np.searchsorted(places[order], np.arange(len(names) + 1)).tolist()
    ordered = table.take(pa.array(order))
    return {
        name: ordered.slice(first, end - first)
        for name, first, end in zip(names, bounds[:-1], bounds[1:], strict=True)
        if end > first
    }


def holds(entry: Entry, key: Key, inputs: Inputs) -> bool:
    """Whether a file may hold something of what is kept under a key, or of the finer set that serves it."""
    if "source" in entry:
        return tuple(entry["source"]) == key
    source = inputs.sources[key]
    if entry.get("relation") != source.relation:
        return False
    if (entry["publication"] == PANES) != (key[0] == "panes"):
        return False
    finer = inputs.finer.get(source.id) if key[0] == "panes" else None
    names = {*inputs.published_as[key], *([finer.id] if finer is not None else ())}
    return not names.isdisjoint(entry["sets"])


def read_panes(storage: Storage, entry: Entry, columns: list[str] | None = None) -> pa.Table:
    """What a stream has published as panes: its strings are names of sets, and attributes."""
    return read(storage, entry, columns, lambda name: True)


def read(
    storage: Storage,
    entry: Entry,
    columns: list[str] | None = None,
    attributes: Callable[[str], bool] = lambda name: False,
) -> pa.Table:
    """A file, with its attributes as dictionaries: they come again and again."""
    try:
        return storage.read_coded(entry["name"], attributes, columns)
    except FileNotFoundError as error:
        raise CheckpointError("DAMAGED", path=entry["name"], detail="it is missing") from error


def needed(entries: Iterable[Entry], inputs: Inputs, horizons: Mapping[Key, int]) -> list[Entry]:
    """The files with something that may still count."""
    return [
        entry
        for entry in entries
        if any(
            holds(entry, key, inputs) and _last_end(entry, source) > horizons[key]
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
    suffix: str = ""
    """In a task, what tells the files of this attempt from those of all others."""

    def panes(self, key: Key, panes: Panes, inputs: Inputs) -> Entry:
        source = inputs.sources[key]
        table = panes.table(source.partials(inputs.stream(source)))
        entry = self._write(f"{key[0]}-{key[1][1:]}", table)
        return {**entry, "source": list(key), "end": int(panes.ends.max(initial=0))}

    def result(self, query_id: str, number: int, last: pa.Table) -> Entry:
        """The last result of a query that emits changes."""
        return {**self._write(f"last-{number}", last), "result_of": query_id}

    def _write(self, name: str, table: pa.Table) -> Entry:
        path = f"{self.log.folder('state')}/{self.folder}/{name}{self.suffix}.parquet"
        return {**self.log.storage.write_table(path, table), "rows": table.num_rows}


def crowded(entries: Sequence[Entry]) -> set[str]:
    """The streams with too many published files."""
    counts: dict[str, int] = {}
    for entry in entries:
        if "relation" in entry:
            counts[entry["relation"]] = counts.get(entry["relation"], 0) + 1
    return {relation for relation, count in counts.items() if count > MOST_FILES}
