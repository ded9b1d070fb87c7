"""The joins of a step in tasks: what they are told, and how what they give is put together."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count

import pyarrow as pa
from pyspark.sql import SparkSession

from weft.algebra import codec
from weft.errors import RunError
from weft.kernel.columns.operations import Array
from weft.kernel.failure import QueryFailure
from weft.kernel.joinagg.entries import Entries
from weft.kernel.joinagg.groups.lowering import lowered, of_tables
from weft.kernel.joinagg.together import Member
from weft.runtime.checkpoint.commits import Entry, Intent
from weft.runtime.checkpoint.failpoints import reach
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.joinagg.inputs import Inputs, Use
from weft.runtime.joinagg.joins.joining import Ready, joined_together
from weft.runtime.joinagg.joins.physical import Group
from weft.runtime.joinagg.lanes.choice import bytes_in_memory
from weft.runtime.joinagg.lanes.coverage import Covered
from weft.runtime.joinagg.lanes.stage import Stage, encoded_group
from weft.runtime.joinagg.lanes.task import run_task
from weft.runtime.joinagg.served import Key
from weft.runtime.joinagg.statefiles import holds
from weft.runtime.protocol.step import StepWork
from weft.runtime.settings import Settings
from weft.runtime.tasks import Output, run_tasks

Runner = Callable[[Stage, str], Sequence[Output]]
"""Runs all tasks of a stage, which is in a file of the checkpoint."""


@dataclass(frozen=True)
class Lanes:
    """How steps run in tasks: the weight of each, and with which settings."""

    weights: tuple[float, ...]
    settings: Settings
    runner: Callable[[SparkSession], Runner]


def on_spark(spark: SparkSession) -> Runner:
    """Runs stages as Spark jobs."""

    def run(stage: Stage, name: str) -> Sequence[Output]:
        def lost() -> RunError:
            megabytes = round(sum(entry["size"] for entry in stage.files) / 1e6)
            return RunError("LANE_LOST", stream=stage.log, megabytes=megabytes, lanes=stage.tasks)

        return run_tasks(spark, run_task, f"{stage.checkpoint}\n{name}", stage.tasks, lost)

    return run


class LaneJoins:
    """Joins that tasks compute from files."""

    def __init__(
        self,
        lanes: Lanes,
        work: StepWork,
        log: StreamLog,
        intent: Intent,
        inputs: Inputs,
        files: Sequence[Entry],
        covered: Covered,
        marks: Mapping[str, int],
    ) -> None:
        self._lanes, self._log = lanes, log
        self._inputs, self._files, self._covered = inputs, files, covered
        self._run = lanes.runner(work.spark)
        self._numbers = count()
        self.seconds: dict[int, float] = {}
        """How long each lane has taken in the step."""
        self._handoff = f"{log.folder('handoff')}/{work.name}-{work.attempt}"
        self._stage = Stage(
            "joins",
            checkpoint=log.storage.uri,
            log=log.stream,
            plan_version=intent.plan_version,
            schemas={name: codec.encode(schema) for name, schema in inputs.schemas.items()},
            finer={name: codec.encode(source) for name, source in inputs.finer.items()},
            files=(),
            marks=marks,
            ansi=intent.settings["ansi"].lower() == "true",
            weights=lanes.weights,
            step=f"{work.name}-{work.attempt}",
            tables=intent.tables,
        )

    def entries(self, use: Use, begin: int) -> Entries:
        return self._covered.entries(use, begin)

    def matched(self, one: Ready) -> Entries | None:
        """Tasks join all inputs at instants."""
        return None

    def has_late(self, use: Use) -> bool | None:
        return None

    def joined(self, query_id: str) -> int | None:
        return None

    def together(self, ready: Sequence[Ready]) -> list[list[Ready]]:
        return joined_together(ready, None)

    def results(
        self, groups: Sequence[Group]
    ) -> Iterator[tuple[Group, Array, list[pa.Table | QueryFailure]]]:
        """All groups are joined in one job. Their groups at instants pass through the driver, entries do not."""
        busy = [group for group in groups if group.chunks]
        if not busy:
            return
        try:
            parts, failed = self._joined(busy)
            for place, group in enumerate(busy):
                for number, chunk in enumerate(group.chunks):
                    members = group.members(chunk, self._inputs.schemas)
                    results = [
                        failed.get((place, which))
                        or self._put_together(member, parts.get((place, number, which), ()))
                        for which, member in enumerate(members)
                    ]
                    yield group, chunk, results
        finally:
            self._log.storage.delete(self._handoff)

    def _joined(
        self, groups: Sequence[Group]
    ) -> tuple[dict[tuple[int, int, int], list[str]], dict[tuple[int, int], QueryFailure]]:
        """The files of partial groups by group, chunk and member; and the members that failed."""
        forms = [encoded_group(g, *self._shares(g), self._inputs) for g in groups]
        keys = {use.key for g in groups for one in g.ready for use in one.uses if use is not None}
        stage = replace(self._stage, groups=forms, files=self._files_of(sorted(keys)))
        parts: dict[tuple[int, int, int], list[str]] = {}
        failed: dict[tuple[int, int], QueryFailure] = {}
        for kind, body in self._told(stage):
            group, member = body["group"], body["member"]
            if kind == "failure":
                queries = (groups[group].ready[member].query.id,)
                failed[group, member] = QueryFailure(body["class"], body["message"], queries)
            else:
                parts.setdefault((group, body["chunk"], member), []).append(body["name"])
        return parts, failed

    def _put_together(self, member: Member, names: Sequence[str]) -> pa.Table | QueryFailure:
        tables = [self._log.storage.read_table(name) for name in names]
        query, partials, ansi = member.query, member.partials, self._stage.ansi
        assert member.instants is not None
        try:
            grouping = of_tables(query, partials, tables, ansi=ansi)
            return lowered(query, partials, grouping, member.instants, ansi=ansi)
        except QueryFailure as failure:
            return QueryFailure(failure.error_class, failure.message, (query.id,))

    def _shares(self, group: Group) -> tuple[list[int], dict[int, int]]:
        """In how many portions each lane joins a group, and the entries of its streams by slot."""
        counts = self._covered.counts()
        uses = [use for use in group.ready[0].uses if use is not None]
        sizes = {use.slot: counts.get(use.key, 0) for use in uses}
        files = self._files_of(sorted({use.key for use in uses}))
        needed = sum(map(bytes_in_memory, files))
        cap = self._lanes.settings.lane_cap_bytes * sum(self._lanes.weights)
        return [max(1, math.ceil(needed * weight / cap)) for weight in self._lanes.weights], sizes

    def _files_of(self, keys: Sequence[Key]) -> list[Entry]:
        return [e for e in self._files if any(holds(e, key, self._inputs) for key in keys)]

    def rewrite(
        self,
        landmarks: Mapping[str, Mapping[str, int]],
        keys: Sequence[Key],
        files: Sequence[Entry],
        horizons: Mapping[Key, int],
    ) -> list[Entry]:
        """Write files anew, one for each key (`keeping.Rewrite`)."""
        stage = replace(
            self._stage,
            kind="rewrite",
            files=list(files),
            keys=[(*key, horizons[key]) for key in keys],
            landmarks=landmarks,
        )
        try:
            return [body for _, body in self._told(stage)]
        finally:
            self._log.storage.delete(self._handoff)

    def _told(self, stage: Stage) -> Sequence[Output]:
        name = f"{self._handoff}/stage-{next(self._numbers)}.json"
        self._log.storage.put(name, stage.encoded())
        outputs: list[Output] = []
        for kind, body in self._run(stage, name):
            if kind == "lane":
                lane = body["lane"]
                self.seconds[lane] = self.seconds.get(lane, 0.0) + body["seconds"]
            else:
                outputs.append((kind, body))
        reach("after_stage")
        return outputs
