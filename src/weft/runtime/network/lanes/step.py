"""The stages of a step in tasks, in their order.

    build       bucket files of inputs that have none of use, from the files of history
    rows        new rows of relations: selections, filters, bucket files of the joins that read them
    joins       one stage for each level of joins; its new rows are bucketed for the level above
    project     rows that only Spark can project (`finish`)
    distinct    of DISTINCT queries, the rows that were not shown before (`finish`)

Old bucket files and those of the step are the index after it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from weft.kernel.failure import QueryFailure
from weft.kernel.network import Program
from weft.kernel.network.passing import Counters
from weft.kernel.network.program import PhysicalNode
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.failpoints import reach
from weft.runtime.network.history import kind_of
from weft.runtime.network.lanes.bucket_files import input_key
from weft.runtime.network.lanes.layout import reads_stream
from weft.runtime.network.lanes.node_rows import BUCKETS
from weft.runtime.network.lanes.stage import Share, Stage, Surroundings
from weft.runtime.tasks import Output

Runner = Callable[[Stage], Sequence[Output]]
"""Runs all tasks of a stage."""


@dataclass
class Written:
    """What the tasks of a step have written: manifest entries."""

    results: list[Entry] = field(default_factory=list)
    raw: list[Entry] = field(default_factory=list)
    """Rows of queries that Spark must project."""
    distinct: list[Entry] = field(default_factory=list)
    """Rows of DISTINCT queries, which may have been shown before."""
    history: list[Entry] = field(default_factory=list)
    """Rows of joins that feed other joins, and hashes of rows that DISTINCT queries have shown."""
    buckets: list[Entry] = field(default_factory=list)
    published: list[Entry] = field(default_factory=list)
    """Rows of derived streams."""


class LaneStep:
    """A step in tasks."""

    def __init__(self, around: Surroundings, program: Program, run: Runner) -> None:
        self._around, self._program, self._run = around, program, run
        self._stages = 0
        self._levels = _levels(program)
        self._waiting = {
            input_key(node.join.left)
            for node in program.nodes
            if node.join is not None and node.join.kind == "anti-join"
        }
        """The inputs whose rows wait until they are closed."""
        self.written = Written()
        self.counters = Counters()
        self.seconds: dict[int, float] = {}
        """How long each lane has taken, in all stages."""

    def build(
        self,
        stale: Sequence[str],
        old: Sequence[Entry],
        base: Iterable[Entry],
        tables: Tables,
        again: Collection[str] = (),
    ) -> list[Entry]:
        """Bucket files of history for the inputs that are stale, beside the old ones that are not.
        `base`: the files of history. Joins of tables alone, and those in `again`, whose files have
        earlier contents of a table, are computed."""
        if not stale:
            return []
        needed = {
            node.id
            for node in self._program.nodes
            if any(input_key(entry) in stale for entry in node.inputs)
        }
        files: list[tuple[str, Entry]] = []
        for entry in base:
            kind, name = kind_of(entry)
            if kind == "relation":
                files += [(source, entry) for source in self._sources(name) if source in needed]
            elif kind == "join" and name in needed and name not in again:
                files.append((name, entry))
        for name, entry in tables.items():
            files += [(source, entry) for source in self._sources(name) if source in needed]
        built = self._rows(files, stale, emits=False)
        for level in self._levels[1:]:
            computed = [
                node
                for node in level
                if node.id in needed and (node.id in again or not reads_stream(self._program, node))
            ]
            built += self._joins(computed, (), [*old, *built], stale, emits=False)
        return built

    def _sources(self, relation: str) -> list[str]:
        """The nodes that have the rows of a stream or table, with lookups or without."""
        return [node.id for node in self._program.nodes if node.base == relation]

    def advance(self, old: Sequence[Entry], new: Sequence[tuple[str, Entry]]) -> None:
        """The matches of new rows, which come as files of relations, with old and new ones."""
        writes = [input_key(entry) for node in self._program.nodes for entry in node.inputs]
        read = [(source, entry) for name, entry in new for source in self._sources(name)]
        fresh = self._rows(read, writes, emits=True)
        for level in self._levels[1:]:
            joins = [node for node in level if reads_stream(self._program, node)]
            fresh += self._joins(joins, old, fresh, writes, emits=True)
        self.written.buckets += fresh

    def distinct(self, shown: Sequence[Entry]) -> None:
        """Show the rows of DISTINCT queries that were not shown before. `shown`: files of hashes."""
        rows = self.written.distinct
        if rows:
            self._stage(
                Stage(self._around, "distinct", self._next(), old=tuple(shown), new=tuple(rows))
            )

    def _rows(
        self, files: Sequence[tuple[str, Entry]], writes: Sequence[str], *, emits: bool
    ) -> list[Entry]:
        if not files:
            return []
        shares = shared_out(files, self._around.weights, self._around.piece_bytes)
        return self._stage(
            Stage(
                self._around, "rows", self._next(), emits=emits, shares=shares, writes=tuple(writes)
            )
        )

    def _joins(
        self,
        joins: Sequence[PhysicalNode],
        old: Sequence[Entry],
        new: Sequence[Entry],
        writes: Sequence[str],
        *,
        emits: bool,
    ) -> list[Entry]:
        """One level of joins. Those without new rows have no new matches; of anti-joins, the watermark
        may have closed old rows."""
        changed = {entry["input"] for entry in new}
        if self._around.watermark > self._around.watermark_before:
            changed |= {entry["input"] for entry in old if entry["input"] in self._waiting}
        joins = [node for node in joins if changed & _sides(node)]
        if not joins:
            return []
        read = set().union(*(_sides(node) for node in joins))
        return self._stage(
            Stage(
                self._around,
                "joins",
                self._next(),
                emits=emits,
                nodes=tuple(node.id for node in joins),
                old=tuple(entry for entry in old if entry["input"] in read),
                new=tuple(entry for entry in new if entry["input"] in read),
                writes=tuple(writes),
            )
        )

    def _next(self) -> int:
        self._stages += 1
        return self._stages

    def _stage(self, stage: Stage) -> list[Entry]:
        """Run a stage; its bucket files."""
        outputs = self._run(stage)
        counters = self.counters if stage.emits else Counters()
        for kind, body in outputs:
            if kind == "counters":
                counters.add(Counters(**body))
            elif kind == "lane":
                lane = body["lane"]
                self.seconds[lane] = self.seconds.get(lane, 0.0) + body["seconds"]
        lookups = [node.id for node in self._program.nodes if node.lookups]
        for name in stage.nodes or lookups:
            counters.check(self._program, self._program.node_by_id[name], self._around.limits)
        for kind, body in outputs:
            if kind == "failure":
                error_class, message, queries = body
                raise QueryFailure(error_class, message, tuple(queries))
        self.take(outputs)
        reach("after_stage")
        return [body for kind, body in outputs if kind == BUCKETS]

    def take(self, outputs: Iterable[Output]) -> None:
        """Take over what was written, apart from bucket files."""
        kinds = {
            "result": self.written.results,
            "raw": self.written.raw,
            "distinct": self.written.distinct,
            "history": self.written.history,
            "published": self.written.published,
        }
        for kind, body in outputs:
            if kind in kinds:
                kinds[kind].append(body)


Tables = Mapping[str, Entry]
"""The file of every table's version in use."""


def _sides(node: PhysicalNode) -> set[str]:
    assert node.join is not None
    return {input_key(node.join.left), input_key(node.join.right)}


def _levels(program: Program) -> list[list[PhysicalNode]]:
    """The nodes by the number of joins on the longest way from a relation."""
    level: dict[str, int] = {}
    levels: list[list[PhysicalNode]] = []
    for node in program.nodes:
        below = (
            -1
            if node.join is None
            else max(level[entry.source] for entry in (node.join.left, node.join.right))
        )
        level[node.id] = below + 1
        while len(levels) <= below + 1:
            levels.append([])
        levels[below + 1].append(node)
    return levels


def shared_out(
    files: Sequence[tuple[str, Entry]], weights: Sequence[float], piece_bytes: int
) -> tuple[tuple[Share, ...], ...]:
    """Files of nodes for some tasks, their sizes by weight; large files in parts."""
    total = sum(int(entry["size"]) for _, entry in files)
    tasks = min(len(weights), 1 + total // piece_bytes)
    shares: list[tuple[int, Share]] = []
    for node, entry in files:
        parts = min(tasks, 1 + int(entry["size"]) // piece_bytes)
        shares += [
            (int(entry["size"]) // parts, Share(node, entry, part, parts)) for part in range(parts)
        ]
    taken: list[list[Share]] = [[] for _ in range(tasks)]
    loads = [0.0] * tasks
    for size, share in sorted(shares, key=lambda one: -one[0]):
        after = [load + (size + 1) / weight for load, weight in zip(loads, weights)]
        least = after.index(min(after))
        taken[least].append(share)
        loads[least] = after[least]
    while taken and not taken[-1]:
        taken.pop()
    return tuple(map(tuple, taken))
