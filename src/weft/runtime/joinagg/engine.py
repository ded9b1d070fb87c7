"""The engine of aggregation joins: published panes and rows in, results at instants out.

In `read` it learns which published files the step consumes, and what the streams have served. In `compute` the kernel evaluates every query
at the instants that the step's watermark has passed. `retain` names the published files that may still count, and what the step has
written itself (`statefiles`). A query that fails is left out, and the others go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import pyarrow as pa

from weft.algebra.joinagg.plan import AggregationPlan
from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.row_lifts import row_columns
from weft.algebra.joinagg.sets import PANES
from weft.algebra.joinagg.sources import source_of
from weft.algebra.network.bits import Bit
from weft.algebra.query import StreamSchema
from weft.kernel.failure import QueryFailure
from weft.kernel.joinagg.instants import Due, first_complete
from weft.kernel.joinagg.panes import Panes, no_panes
from weft.kernel.windows.program import family
from weft.optimizer.joinagg.plans import Plan
from weft.runtime.checkpoint.commits import (
    RETAINED,
    STATE,
    Commit,
    Entry,
    Intent,
    Staged,
    editions,
)
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.joinagg import statefiles
from weft.runtime.joinagg.inputs import Inputs, Use
from weft.runtime.joinagg.keeping import Keeping, Kept, horizons_of
from weft.runtime.joinagg.publication import LATE_ROWS
from weft.runtime.joinagg.results import Evaluator, QueryResult
from weft.runtime.joinagg.served import Key, StreamServed
from weft.runtime.joinagg.shared_entries import SharedEntries
from weft.runtime.joinagg.waiting import waits_for
from weft.runtime.planning.versions import ALWAYS
from weft.runtime.protocol.engine import Retained
from weft.runtime.protocol.follower import consumed_steps
from weft.runtime.protocol.step import StepFailed, StepWork
from weft.runtime.tables import Bits, TableVersions

LOG = "@aggjoin"
"""The name of the log of aggregation joins. No stream's name has an @."""


_RECONSIDERED_EVERY = 20
"""Every how many steps other plans are priced."""


class Planning(Protocol):
    """Who chooses the plans of queries (`choices`)."""

    def plans(self, query: AggregationJoin) -> tuple[Plan, Plan | None]: ...
    def reconsider(self, query: AggregationJoin) -> bool: ...
    def settle(self, query: AggregationJoin) -> None: ...


@dataclass(frozen=True)
class _Consumed:
    """What a step consumes: published files, and what the streams have served up to here."""

    files: tuple[Entry, ...] = ()
    served: Mapping[str, StreamServed] = field(default_factory=dict)


@dataclass(frozen=True)
class JoinAggOutcome:
    """The results of a step, and the state after it."""

    families: Mapping[str, Sequence[pa.Table]]
    panes: Mapping[Key, Panes]
    results: Mapping[str, QueryResult]
    complete: Mapping[str, int]
    landmarks: Mapping[str, Mapping[str, int]]
    instants: int
    switched: tuple[str, ...] = ()
    """The queries that have switched to another plan."""
    written: Sequence[Entry] = ()

    @property
    def rows(self) -> int:
        return sum(int(t.num_rows) for tables in self.families.values() for t in tables)


class JoinAggEngine:
    """Runs all aggregation joins."""

    def __init__(
        self,
        log: StreamLog,
        stream_log: Callable[[str], StreamLog],
        queries: Callable[[], Sequence[AggregationJoin]],
        choices: Planning,
        schemas: Callable[[], Mapping[str, StreamSchema]],
        tables: TableVersions,
    ) -> None:
        self._log, self._stream_log = log, stream_log
        self._queries, self._choices = queries, choices
        self._asked = 0
        """How often it was asked whether other plans pay."""
        self._schemas, self._tables = schemas, tables
        self._consumed = _Consumed()
        self._panes: dict[Key, Panes] | None = None
        """What may still count, after the last commit; None before anything is read."""
        self._kept_panes: dict[Key, Panes] = {}
        """The same after the step under way."""
        self._results: dict[str, QueryResult] = {}

    @property
    def where(self) -> str:
        return "driver"

    def may_overlap(self, work: StepWork) -> bool:
        """A follower gains nothing: its input is files, which it need not read early."""
        return False

    # plans

    def serves(self, head: Commit | Staged) -> bool:
        plan = self._log.aggregations(head.plan_version)
        queries = self._queries()
        if [query.id for query in plan.queries] != [query.id for query in queries]:
            return False
        if isinstance(head, Commit) and head.engine["complete"] != dict(plan.complete_from):
            return False
        return all(
            (plan.early[query.id], plan.following.get(query.id)) == self._choices.plans(query)
            for query in queries
        )

    def outgrown(self, head: Commit | Staged, last: Commit | None) -> bool:
        """Whether another plan pays for some query by now; looked at from time to time."""
        self._asked += 1
        if self._asked % _RECONSIDERED_EVERY:
            return False
        switching = [query for query in self._queries() if self._choices.reconsider(query)]
        return bool(switching)

    def new_plan(self, work: StepWork, last: Commit | None) -> int:
        queries = tuple(self._queries())
        known = last.engine["complete"] if last else {}
        version = max(self._log.plan_versions(), default=0) + 1
        plans = {query.id: self._choices.plans(query) for query in queries}
        plan = AggregationPlan(
            version,
            queries,
            {name: plan for name, (plan, _) in plans.items()},
            {name: following for name, (_, following) in plans.items() if following is not None},
            {query.id: known[query.id] for query in queries if query.id in known},
        )
        self._log.put_plan(plan)
        return version

    def replanned(self, failures: Sequence[str], version: int, last: Commit | None) -> int:
        return self.left_out(failures, version)

    def left_out(self, failures: Sequence[str], version: int) -> int:
        new_version = max(self._log.plan_versions()) + 1
        self._log.put_plan(self._log.aggregations(version).without(failures, new_version))
        return new_version

    def tables(self, version: int) -> dict[str, str]:
        wanted: dict[str, dict[str, Bit]] = {}
        for query in self._log.aggregations(version).queries:
            for slot, entry in enumerate(query.inputs):
                if entry.window is None:
                    made = row_columns(source_of(query, slot), None).all
                    bits = {
                        column.name: Bit(column.name, column.sql, column.type) for column in made
                    }
                    wanted.setdefault(entry.relation, {}).update(bits)
        bits_of: Bits = {name: tuple(bits.values()) for name, bits in wanted.items()}
        return self._tables.versions(self._log.stream, bits_of)

    # a step

    def read(self, work: StepWork, intent: Intent, last: Commit | None) -> None:
        files: list[Entry] = []
        before = last.engine["streams"] if last else {}
        served = {name: StreamServed.decoded(body) for name, body in before.items()}
        for relation, position in intent.inputs.items():
            stream = served.setdefault(relation, StreamServed())
            after = last.inputs.get(relation) if last else None
            for step in consumed_steps(self._stream_log(relation), after, position, LATE_ROWS):
                stream.take(step)
                edition = editions(step).get(LATE_ROWS)
                files += [
                    statefiles.retained(entry, relation, edition.names if edition else ())
                    for entry in step["published"]
                    if entry["publication"] in (PANES, LATE_ROWS)
                ]
        self._consumed = _Consumed(tuple(files), served)
        work.counted["rows"] = sum(entry["rows"] for entry in files)

    def compute(
        self, work: StepWork, intent: Intent, last: Commit | None, sequence: int
    ) -> JoinAggOutcome:
        plan = self._log.aggregations(intent.plan_version)
        inputs = Inputs(plan, self._schemas())
        with work.timed("state"):
            panes = self._with_new(inputs, last)
        evaluator = Evaluator(
            work.spark,
            self._schemas(),
            {name: self._tables.rows(version) for name, version in intent.tables.items()},
            intent.settings["ansi"].lower() == "true",
        )
        shared = SharedEntries(panes, inputs, intent.watermark)
        landmarks = self._landmarks(inputs, last)
        horizons, known = horizons_of(last), last.engine["complete"] if last else {}
        results: dict[str, QueryResult] = {}
        complete: dict[str, int] = {}
        failures: dict[str, QueryFailure] = {}
        switched: list[str] = []
        with work.timed("kernel"):
            for query in plan.queries:
                earlier = self._results.get(query.id, QueryResult())
                results[query.id] = earlier = replace(earlier, rows=(), instants=0)
                next_instant = intent.watermark_before // query.step * query.step + query.step
                uses, early = inputs.uses[query.id], plan.early[query.id]
                landmarks_of = landmarks.get(query.id, {})
                if query.id in inputs.following:
                    following = self._begins(inputs.following[query.id], landmarks_of, horizons)
                    if following is not None and _first(query, following) <= next_instant:
                        uses, early = inputs.following[query.id], plan.following[query.id]
                        switched.append(query.id)
                begins = self._begins(uses, landmarks_of, horizons)
                if begins is None:
                    continue
                first = _first(query, begins)
                complete[query.id] = known.get(query.id, first) if first <= next_instant else first
                streams = {
                    use.slot: shared.of(use, begins[use.slot]) for use in uses if use is not None
                }
                due = Due(intent.watermark_before, intent.watermark, query.step)
                try:
                    results[query.id] = evaluator.result(query, early, streams, due, first, earlier)
                except QueryFailure as failure:
                    failures[query.id] = failure
        if failures:
            raise StepFailed(failures)
        families: dict[str, list[pa.Table]] = {}
        for query_id, result in results.items():
            if result.rows:
                name = family(plan.query_by_id[query_id].output_types)
                families.setdefault(name, []).extend(result.rows)
        instants = sum(result.instants for result in results.values())
        return JoinAggOutcome(
            families, panes, results, complete, landmarks, instants, tuple(switched)
        )

    def _with_new(self, inputs: Inputs, last: Commit | None) -> dict[Key, Panes]:
        """All that may count in the step, by source."""
        storage, horizons = self._log.storage, horizons_of(last)
        state = self._panes
        if state is None or not inputs.sources.keys() <= state.keys():
            state = self._restored(inputs, last)
            self._panes = state
        new = statefiles.panes_in(storage, self._consumed.files, inputs)
        return {
            key: state[key].after(horizons.get(key, ALWAYS)).together(new.get(key, ()))
            for key in inputs.sources
        }

    def _restored(self, inputs: Inputs, last: Commit | None) -> dict[Key, Panes]:
        """What the files of the last commit hold."""
        storage, horizons = self._log.storage, horizons_of(last)
        live = last.live if last else {}
        entries = [entry for kind in (STATE, RETAINED) for entry in live.get(kind, ())]
        results = [entry for entry in entries if "result_of" in entry]
        found = statefiles.panes_in(
            storage, [entry for entry in entries if "result_of" not in entry], inputs
        )
        started = last.engine["started"] if last else {}
        self._results = {query: QueryResult(started=at) for query, at in started.items()}
        for entry in results:
            query = entry["result_of"]
            table = storage.read_table(entry["name"])
            known = self._results.get(query, QueryResult())
            self._results[query] = replace(known, last=table)
        return {
            key: no_panes(source, inputs.stream(source))
            .together(found.get(key, ()))
            .after(horizons.get(key, ALWAYS))
            for key, source in inputs.sources.items()
        }

    def _landmarks(self, inputs: Inputs, last: Commit | None) -> dict[str, dict[str, int]]:
        """By query and slot of a landmark window: where it begins. What had come before the query's first step is not
        in it."""
        before = last.engine["landmarks"] if last else {}
        known_streams = last.engine["streams"] if last else {}
        landmarks: dict[str, dict[str, int]] = {}
        for use in inputs:
            if use.window.kind != "landmark":
                continue
            known = before.get(use.query.id, {}).get(str(use.slot))
            if known is None:
                latest = known_streams.get(use.source.relation, {}).get("latest")
                known = ALWAYS if latest is None else latest + 1
            landmarks.setdefault(use.query.id, {})[str(use.slot)] = known
        return landmarks

    def _begins(
        self,
        uses: Sequence[Use | None],
        landmarks: Mapping[str, int],
        horizons: Mapping[Key, int],
    ) -> list[int] | None:
        """By input the event time from which on all of it is here; None if a stream does not serve it yet."""
        begins: list[int] = []
        for slot, use in enumerate(uses):
            if use is None:
                begins.append(ALWAYS)
                continue
            served = self._served(use)
            if served is None:
                return None
            gone = horizons.get(use.key, ALWAYS) // use.source.pane * use.source.pane
            begins.append(max(served, gone, landmarks.get(str(slot), ALWAYS)))
        return begins

    def _served(self, use: Use) -> int | None:
        stream = self._consumed.served.get(use.source.relation)
        return None if stream is None else stream.begins.get(use.key)

    def retain(
        self, work: StepWork, intent: Intent, outcome: JoinAggOutcome, last: Commit | None
    ) -> Retained:
        inputs = Inputs(self._log.aggregations(intent.plan_version), self._schemas())
        keeping = Keeping(self._log, work, inputs, intent.watermark, last, outcome)
        kept = keeping.kept(self._consumed.files)
        self._kept_panes = dict(kept.panes)
        served = self._consumed.served
        started = {
            query: result.started
            for query, result in outcome.results.items()
            if result.started is not None
        }
        section: dict[str, Any] = {
            "mark": intent.watermark,
            "latest": None,
            "streams": {
                name: stream.used(inputs.by_key).encoded() for name, stream in served.items()
            },
            "horizons": [[*key, end] for key, end in keeping.horizons.items()],
            "landmarks": outcome.landmarks,
            "complete": dict(outcome.complete),
            "started": started,
        }
        return Retained(
            live={STATE: kept.state, RETAINED: kept.retained},
            dead=kept.dead,
            section=section,
            late=last.late if last else {},
            metrics=self._metrics(work, inputs, outcome, kept, last),
        )

    def _metrics(
        self,
        work: StepWork,
        inputs: Inputs,
        outcome: JoinAggOutcome,
        kept: Kept,
        last: Commit | None,
    ) -> dict[str, Any]:
        before = last.metrics if last else {}
        panes = kept.panes
        served = self._consumed.served
        watermarks = {
            use.source.relation: served[use.source.relation].watermark
            if use.source.relation in served
            else None
            for use in inputs
        }
        return {
            "rows": before.get("rows", 0) + work.count("rows"),
            "results": before.get("results", 0) + outcome.rows,
            "instants": before.get("instants", 0) + outcome.instants,
            "seconds": before.get("seconds", 0.0) + time.perf_counter() - work.started,
            "entries": {"/".join(key): len(held) for key, held in panes.items()},
            "entry_bytes": sum(held.nbytes for held in panes.values()),
            "watermarks": watermarks,
            "waits_for": waits_for(watermarks, before, time.time()),
        }

    def committed(
        self, work: StepWork, intent: Intent, outcome: JoinAggOutcome, commit: Commit
    ) -> None:
        self._panes = self._kept_panes
        self._results = {
            query: replace(result, rows=()) for query, result in outcome.results.items()
        }
        self._tables.clean()
        queries = self._log.aggregations(intent.plan_version).query_by_id
        for name in outcome.switched:
            self._choices.settle(queries[name])


def _first(query: AggregationJoin, begins: Sequence[int]) -> int:
    """The first instant whose windows are complete."""
    return ALWAYS if max(begins) == ALWAYS else first_complete(query, begins)
