"""What one task does: it joins its share of the key buckets of every group, or writes its share of old files anew.

Of every file it reads what its groups need, and keeps the entries of one portion of its buckets at a time. The groups of queries at instants are small;
those of all portions are put together, and written for the driver.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from weft.kernel.failure import QueryFailure
from weft.kernel.joinagg.entries import Entries
from weft.kernel.joinagg.groups.lowering import of_tables, to_table
from weft.kernel.joinagg.panes import Panes, no_panes
from weft.kernel.joinagg.split import Split, split_of
from weft.kernel.joinagg.together import Member, parts_together
from weft.kernel.network.buckets import Range
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.joinagg.inputs import Inputs, Use
from weft.runtime.joinagg.joins.joining import narrowed
from weft.runtime.joinagg.joins.physical import Sides, sides_of
from weft.runtime.joinagg.keeping import folded_panes
from weft.runtime.joinagg.lanes.stage import Form, Stage, decoded_group
from weft.runtime.joinagg.served import Key
from weft.runtime.joinagg.statefiles import StepFiles, panes_of
from weft.runtime.tables import table_path
from weft.runtime.tasks import Output, task_attempt


def run_task(payload: str, number: int) -> Iterator[Output]:
    """The outputs of one task. The payload is a checkpoint, and the file in it that holds the stage."""
    started = time.perf_counter()
    yield from _outputs(payload, number)
    yield "lane", {"lane": number, "seconds": time.perf_counter() - started}


def _outputs(payload: str, number: int) -> Iterator[Output]:
    checkpoint, name = payload.split("\n")
    stage = Stage.read(Storage(checkpoint), name)
    inputs = stage.inputs()
    if stage.kind == "rewrite":
        yield from _rewritten(stage, inputs, number)
        return
    storage = Storage(checkpoint)
    tables = {
        relation: storage.read_table(table_path(version))
        for relation, version in stage.tables.items()
    }
    for place, form in enumerate(stage.groups):
        yield from _joined(stage, inputs, tables, place, form, number)


def _joined(
    stage: Stage,
    inputs: Inputs,
    tables: Mapping[str, pa.Table],
    place: int,
    form: Form,
    number: int,
) -> Iterator[Output]:
    group, schemas = decoded_group(form, inputs), inputs.schemas
    split = split_of(group.ready[0].query, dict(form["sizes"]))
    chunks = group.chunks
    parts: dict[tuple[int, int], list[pa.Table]] = {}
    failed: dict[int, QueryFailure] = {}
    for buckets in Range.shares(stage.weights)[number].parts(form["portions"][number]):
        held = _Portion(stage, inputs, split, buckets)
        sides = sides_of(group.ready, held, tables, Sides())
        for chunk_number, chunk in enumerate(chunks):
            members = group.members(chunk, schemas)
            for which, result in enumerate(parts_together(members, sides, chunk, ansi=stage.ansi)):
                if isinstance(result, QueryFailure):
                    failed[which] = result
                elif result.num_rows:
                    parts.setdefault((chunk_number, which), []).append(result)
    for which, failure in failed.items():
        about = {"class": failure.error_class, "message": failure.message}
        yield "failure", {"group": place, "member": which, **about}
    log = StreamLog(Storage(stage.checkpoint), stage.log)
    for (chunk_number, which), found in parts.items():
        if which in failed:
            continue
        member = group.members(chunks[chunk_number], schemas)[which]
        part = f"{place}-{chunk_number}-{which}-{number}-{task_attempt()}"
        name = f"{log.folder('handoff')}/{stage.step}/{part}.parquet"
        log.storage.write_table(name, _as_one(member, found, stage.ansi))
        where = {"group": place, "chunk": chunk_number, "member": which}
        yield "part", {**where, "name": name}


def _as_one(member: Member, tables: Sequence[pa.Table], ansi: bool) -> pa.Table:
    if len(tables) == 1:
        return tables[0]
    grouping = of_tables(member.query, member.partials, tables, ansi=ansi)
    return to_table(member.query, member.partials, grouping)


@dataclass(frozen=True)
class _Portion:
    """The entries of some buckets, read from files."""

    stage: Stage
    inputs: Inputs
    split: Split
    buckets: Range

    def part(self, slot: int) -> int | None:
        """Inputs that are split have entries of their own, also where a stream is joined with itself."""
        return slot if slot in self.split.keys else None

    def of(self, uses: Sequence[Use], begin: int) -> Entries:
        first = uses[0]
        source = self.inputs.sources[first.key]
        partials = source.partials(first.stream)
        storage = Storage(self.stage.checkpoint)
        whole = no_panes(source, first.stream)
        whole = whole if first.early else narrowed(whole, uses)
        parts = []
        for entry in self.stage.files:
            for _, panes in panes_of(storage, entry, self.inputs, [first.key]):
                inside = panes.since(begin).having(source, partials)
                inside = inside if first.early else narrowed(inside, uses)
                chosen = self.split.part(
                    first.slot, inside.kept, self.buckets, ansi=self.stage.ansi
                )
                if len(chosen):
                    parts.append(replace(inside, kept=chosen))
        return whole.together(parts).entries(first.window, first.query.step)


def _rewritten(stage: Stage, inputs: Inputs, number: int) -> Iterator[Output]:
    """One file for each source, in place of all that hold something of it."""
    log = StreamLog(Storage(stage.checkpoint), stage.log)
    files = StepFiles(log, stage.step, f"-{task_attempt()}")
    for kind, name, horizon in stage.keys[number :: stage.tasks]:
        key: Key = ("panes" if kind == "panes" else "rows", name)
        source = inputs.sources[key]
        stream = inputs.stream(source)
        found = [panes for entry in stage.files for panes in _of_key(log, entry, inputs, key)]
        panes = no_panes(source, stream).together(found).after(horizon)
        panes = folded_panes(panes, key, inputs, stage.marks, stage.landmarks)
        if len(panes):
            yield "file", files.panes(key, panes, inputs)


def _of_key(log: StreamLog, entry: Entry, inputs: Inputs, key: Key) -> list[Panes]:
    return [panes for _, panes in panes_of(log.storage, entry, inputs, [key]) if len(panes)]
