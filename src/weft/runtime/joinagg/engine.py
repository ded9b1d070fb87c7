"""The engine of aggregation joins: published panes and rows in, results at instants out.

In `read` it learns which published files the step consumes, and what the streams have served. In `compute` the kernel evaluates every query
at the instants that the watermarks of its streams have passed. `retain` names the published files that may still count, and what the step has
written itself (`statefiles`). A query that fails is left out, and the others go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import pyarrow as pa

from weft.algebra.joinagg.plan import AggregationPlan
from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.row_lifts import row_columns
from weft.algebra.joinagg.sets import PANES
from weft.algebra.joinagg.sources import Source, source_of
from weft.algebra.network.bits import Bit
from weft.algebra.query import StreamSchema
from weft.errors import CheckpointError
from weft.kernel.joinagg.instants import first_complete
from weft.kernel.joinagg.matched import Matches
from weft.kernel.joinagg.panes import Panes, no_panes
from weft.kernel.joinagg.updating import SetMemory
from weft.kernel.windows.program import family
from weft.optimizer.joinagg.plans import Plan
from weft.runtime.checkpoint.commits import (
    RETAINED,
    STATE,
    Commit,
    Entry,
    Intent,
    Staged,
)
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.joinagg import statefiles
from weft.runtime.joinagg.inputs import Inputs, Use
from weft.runtime.joinagg.joins.joining import Kept as KeptEntries
from weft.runtime.joinagg.joins.joining import Ready
from weft.runtime.joinagg.joins.physical import DriverJoins, Joins
from weft.runtime.joinagg.keeping import Keeping, Kept, Rewrite, folded_until, horizons_of
from weft.runtime.joinagg.lanes.choice import bytes_in_memory, use_lanes
from weft.runtime.joinagg.lanes.computing import LaneJoins, Lanes
from weft.runtime.joinagg.lanes.coverage import Coverage
from weft.runtime.joinagg.matches.consuming import of_network, of_streams
from weft.runtime.joinagg.matches.held import NETWORK, HeldMatches, Opened, of_matches
from weft.runtime.joinagg.matches.passed import NetworkPassed
from weft.runtime.joinagg.publication import LATE_ROWS
from weft.runtime.joinagg.results import Evaluator, QueryResult
from weft.runtime.joinagg.served import Key, StreamServed
from weft.runtime.joinagg.spans import Span, complete_matches, spans_of, spans_with_matches
from weft.runtime.joinagg.waiting import streams_of, waits_for
from weft.runtime.planning.versions import ALWAYS
from weft.runtime.protocol.engine import Retained
from weft.runtime.protocol.follower import consumed
from weft.runtime.protocol.step import StepFailed, StepWork
from weft.runtime.tables import Bits, TableVersions
from weft.runtime.tasks import lane_totals

LOG = "@aggjoin"
"""The name of the log of aggregation joins. No stream's name has an @."""


_RECONSIDERED_EVERY = 20
"""Every how many steps other plans are priced."""


class Planning(Protocol):
    """Who chooses the plans of queries (`choices`)."""

    def plans(self, query: AggregationJoin) -> tuple[Plan, Plan | None]: ...
    def matched(self, query: AggregationJoin) -> tuple[int, ...]: ...
    def reconsider(self, query: AggregationJoin, joined: float | None) -> bool: ...
    def settle(self, query: AggregationJoin) -> None: ...
    def provider(self, source: Source) -> Source | None: ...
    def keep_sets(self, needed: Collection[str]) -> None: ...


@dataclass(frozen=True)
class _Consumed:
    """What a step consumes: published files, what the streams have served up to here, and how far the network has come."""

    files: tuple[Entry, ...] = ()
    served: Mapping[str, StreamServed] = field(default_factory=dict)
    matches: tuple[Entry, ...] = ()
    """Files with matches that the network has found."""
    network: NetworkPassed = field(default_factory=NetworkPassed.nothing)


@dataclass(frozen=True)
class JoinAggOutcome:
    """The results of a step, and the state after it."""

    families: Mapping[str, Sequence[pa.Table]]
    panes: Mapping[Key, Panes]
    """What is in memory; nothing, if the step ran in tasks."""
    entries: Mapping[Key, int]
    results: Mapping[str, QueryResult]
    complete: Mapping[str, int]
    landmarks: Mapping[str, Mapping[str, int]]
    instants: int
    joins: int = 0
    """How many physical joins it took."""
    switched: tuple[str, ...] = ()
    """The queries that have switched to another plan."""
    matches: Opened = field(default_factory=Opened)
    """What the network has found."""
    marks: Mapping[str, int] = field(default_factory=dict)
    """By query, the time up to which it is evaluated."""
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
        lanes: Lanes,
    ) -> None:
        self._log, self._stream_log = log, stream_log
        self._queries, self._choices = queries, choices
        self._asked = 0
        """How often it was asked whether other plans pay."""
        self._joined: dict[str, float] = {}
        """By query whose inputs are all late, how many entries were joined at an instant, the last time that there was one."""
        self._schemas, self._tables = schemas, tables
        self._consumed = _Consumed()
        self._panes: dict[Key, Panes] | None = None
        """What may still count, after the last commit; None before anything is read."""
        self._kept_panes: dict[Key, Panes] = {}
        """The same after the step under way."""
        self._kept_matches: Mapping[str, Matches] = {}
        self._results: dict[str, QueryResult] | None = None
        """The last results of queries; None before anything is read."""
        self._matches = HeldMatches(log)
        self._sets = SetMemory()
        """Aggregation sets after the last commit, to be updated by the next step."""
        self._lanes, self._in_lanes = lanes, lanes.settings.kernel == "lanes"
        self._coverage = Coverage(log.storage)
        self._lane_joins: LaneJoins | None = None
        """The joins of the step under way, if in tasks."""
        self._rewrite: Rewrite | None = None
        """How the step under way writes files anew, if in tasks."""
        self._step_inputs: Inputs | None = None
        self._sets_of_plan: int | None = None
        """The plan whose published sets are remembered, and no others."""

    @property
    def where(self) -> str:
        return "lanes" if self._in_lanes else "driver"

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
            and plan.matched.get(query.id, ()) == self._choices.matched(query)
            for query in queries
        )

    def outgrown(self, head: Commit | Staged, last: Commit | None) -> bool:
        """Whether another plan pays for some query by now; looked at from time to time."""
        self._asked += 1
        if self._asked % _RECONSIDERED_EVERY:
            return False
        switching = [
            query
            for query in self._queries()
            if self._choices.reconsider(query, self._joined.get(query.id))
        ]
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
            {query.id: slots for query in queries if (slots := self._choices.matched(query))},
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
        self._step_inputs = None
        before = last.engine["streams"] if last else {}
        served = {name: StreamServed.decoded(body) for name, body in before.items()}
        finer = self._inputs(intent.plan_version).finer
        served_by = {name: provider.id for name, provider in finer.items()}
        streams = of_streams(intent)
        for step in consumed(streams, last, self._stream_log, PANES, LATE_ROWS):
            served.setdefault(step.relation, StreamServed()).take(step.step, served_by)
            edition = step.edition(LATE_ROWS)
            rows_of = edition.names if edition else ()
            files += [statefiles.retained(e, step.relation, rows_of) for e in step.files]
        for relation in streams.inputs:
            served.setdefault(relation, StreamServed())
        now = self._log.aggregations(intent.plan_version).query_by_matches.keys()
        before = self._log.aggregations(last.plan_version).query_by_matches.keys() if last else ()
        matches, network = of_network(intent, last, self._stream_log, now - {*before})
        self._consumed = _Consumed(tuple(files), served, matches, network)
        work.counted["rows"] = sum(entry["rows"] for entry in files)

    def _inputs(self, plan_version: int) -> Inputs:
        """The inputs of a plan, as the step that is under way sees them."""
        if self._step_inputs is None or self._step_inputs.plan.version != plan_version:
            plan = self._log.aggregations(plan_version)
            self._step_inputs = Inputs(plan, self._schemas(), self._choices.provider)
        return self._step_inputs

    def compute(
        self, work: StepWork, intent: Intent, last: Commit | None, sequence: int
    ) -> JoinAggOutcome:
        plan = self._log.aggregations(intent.plan_version)
        inputs = self._inputs(intent.plan_version)
        landmarks = self._landmarks(inputs, last)
        served, network = self._consumed.served, self._consumed.network
        spans = spans_of(plan, served, last)
        with work.timed("state"):
            opened = self._matches.opened(
                plan.query_by_matches, self._schemas(), last, self._consumed.matches
            )
            joins, panes, counts = self._joins(
                work, intent, last, inputs, landmarks, spans, opened.matches
            )
        matched = complete_matches(inputs, network, spans, joins.has_late)
        spans |= spans_with_matches(plan, matched, network, spans)
        earlier = self._known_results(last)
        ansi = intent.settings["ansi"].lower() == "true"
        evaluator = Evaluator(work.spark, joins, spans, ansi)
        gone = horizons_of(last), folded_until(last)
        known = last.engine["complete"] if last else {}
        before = {
            query.id: replace(earlier.get(query.id, QueryResult()), rows=(), instants=0)
            for query in plan.queries
        }
        complete: dict[str, int] = {}
        switched: list[str] = []
        ready: list[Ready] = []
        for query in plan.queries:
            since, _ = spans[query.id]
            next_instant = since // query.step * query.step + query.step
            uses, early = inputs.uses[query.id], plan.early[query.id]
            landmarks_of = landmarks.get(query.id, {})
            if query.id in inputs.following:
                following = self._begins(inputs.following[query.id], landmarks_of, *gone)
                if following is not None and _first(query, following) <= next_instant:
                    uses, early = inputs.following[query.id], plan.following[query.id]
                    switched.append(query.id)
            begins = self._begins(uses, landmarks_of, *gone)
            if begins is None:
                continue
            for slot in landmarks_of:  # where panes are folded, this is an edge
                landmarks_of[slot] = begins[int(slot)]
            first = _first(query, begins)
            if first <= next_instant:
                # a new query does not show what the others have passed
                shown_from = max(first, next_instant) if since > 0 else first
                complete[query.id] = min(known.get(query.id, shown_from), shown_from)
            else:
                complete[query.id] = first
            found_before = matched.get(query.id, ()) if uses is inputs.uses[query.id] else ()
            ready.append(Ready(query, early, uses, tuple(begins), first, found_before))
        with work.timed("kernel"):
            found, failures, joined = evaluator.results(ready, before)
        results = {**before, **found}
        if failures:
            raise StepFailed(failures)
        for one in ready:
            joined_entries, of_step = joins.joined(one.query.id), results[one.query.id].instants
            if joined_entries is not None and of_step and not any(one.early):
                self._joined[one.query.id] = joined_entries / of_step
        families: dict[str, list[pa.Table]] = {}
        for query_id, result in results.items():
            if result.rows:
                name = family(plan.query_by_id[query_id].output_types)
                families.setdefault(name, []).extend(result.rows)
        instants = sum(result.instants for result in results.values())
        marks = {name: now for name, (_, now) in spans.items()}
        return JoinAggOutcome(
            families,
            panes,
            counts,
            results,
            complete,
            landmarks,
            instants,
            joined,
            tuple(switched),
            opened,
            marks,
        )

    def _joins(
        self,
        work: StepWork,
        intent: Intent,
        last: Commit | None,
        inputs: Inputs,
        landmarks: Mapping[str, Mapping[str, int]],
        spans: Mapping[str, Span],
        matches: Mapping[str, Matches],
    ) -> tuple[Joins, dict[Key, Panes], dict[Key, int]]:
        """Where the step's joins run, what they hold in memory, and, if nothing, how much there is."""
        files = [*_files(last), *self._consumed.files]
        self._in_lanes = use_lanes(self._lanes.settings, files, self._in_lanes)
        self._rewrite = self._lane_joins = None
        if self._in_lanes:
            covered = self._coverage.known(files, inputs)
            marks = {name: now for name, (_, now) in spans.items()}
            lanes = LaneJoins(self._lanes, work, self._log, intent, inputs, files, covered, marks)
            self._rewrite = partial(lanes.rewrite, landmarks)
            self._lane_joins = lanes
            return lanes, {}, covered.counts()
        panes = self._with_new(inputs, last)
        tables = {name: self._tables.rows(version) for name, version in intent.tables.items()}
        ansi = intent.settings["ansi"].lower() == "true"
        kept = KeptEntries(panes)
        counts = {key: len(held) for key, held in panes.items()}
        self._sets.drop()
        joins = DriverJoins(kept, self._schemas(), tables, ansi, self._sets, matches)
        return joins, panes, counts

    def _with_new(self, inputs: Inputs, last: Commit | None) -> dict[Key, Panes]:
        """All that may count in the step, by source."""
        storage, horizons = self._log.storage, horizons_of(last)
        state = self._panes
        if state is None or not inputs.sources.keys() <= state.keys():
            state = self._restored(inputs, last)
            self._panes = state
        new = statefiles.panes_in(storage, self._consumed.files, inputs)
        return {
            key: state[key]
            .having(source, source.partials(inputs.stream(source)))
            .after(horizons.get(key, ALWAYS))
            .together(new.get(key, ()))
            for key, source in inputs.sources.items()
        }

    def _restored(self, inputs: Inputs, last: Commit | None) -> dict[Key, Panes]:
        """What the files of the last commit hold."""
        storage, horizons = self._log.storage, horizons_of(last)
        found = statefiles.panes_in(storage, _files(last), inputs)
        return {
            key: no_panes(source, inputs.stream(source))
            .together(found.get(key, ()))
            .after(horizons.get(key, ALWAYS))
            for key, source in inputs.sources.items()
        }

    def _known_results(self, last: Commit | None) -> dict[str, QueryResult]:
        """The last results of queries, as the last commit has them."""
        if self._results is None:
            started = last.engine["started"] if last else {}
            known = {query: QueryResult(started=at) for query, at in started.items()}
            for entry in last.state if last else ():
                if "result_of" in entry:
                    table = self._log.storage.read_table(entry["name"])
                    before = known.get(entry["result_of"], QueryResult())
                    known[entry["result_of"]] = replace(before, last=table)
            self._results = known
        return self._results

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
        folded: Mapping[Key, int],
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
            gone = horizons.get(use.key, ALWAYS)
            if use.window.kind != "landmark":
                gone = max(gone, folded.get(use.key, ALWAYS))
            gone = gone // use.source.pane * use.source.pane
            begins.append(max(served, gone, landmarks.get(str(slot), ALWAYS)))
        return begins

    def _served(self, use: Use) -> int | None:
        stream = self._consumed.served.get(use.source.relation)
        return None if stream is None else stream.begins.get(use.served_key)

    def retain(
        self, work: StepWork, intent: Intent, outcome: JoinAggOutcome, last: Commit | None
    ) -> Retained:
        inputs = self._inputs(intent.plan_version)
        marks = outcome.marks
        keeping = Keeping(self._log, work, inputs, marks, last, outcome, self._rewrite)
        kept = keeping.kept(self._consumed.files)
        network = self._consumed.network
        matches = self._matches.kept(
            outcome.matches, marks, network.unseen, last, f"{work.name}-{work.attempt}"
        )
        self._kept_matches = matches.matches
        self._kept_panes = dict(kept.panes)
        served = self._consumed.served
        started = {
            query: result.started
            for query, result in outcome.results.items()
            if result.started is not None
        }
        section: dict[str, Any] = {
            "mark": intent.watermark,
            "marks": dict(marks),
            NETWORK: network.encoded(),
            "latest": None,
            "streams": {
                name: stream.used({use.served_key for use in inputs}).encoded()
                for name, stream in served.items()
            },
            "horizons": [[*key, end] for key, end in keeping.horizons.items()],
            "folded": [[*key, end] for key, end in keeping.folded.items()],
            "landmarks": outcome.landmarks,
            "complete": dict(outcome.complete),
            "started": started,
        }
        return Retained(
            live={
                STATE: (*kept.state, *matches.state),
                RETAINED: (*kept.retained, *matches.retained),
            },
            dead=(*kept.dead, *matches.dead),
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
        lanes = {name: before[name] for name in ("lane_weights", "lane_seconds") if name in before}
        if self._lane_joins is not None:
            lanes = lane_totals(before, self._lanes.weights, self._lane_joins.seconds)
        return {
            **lanes,
            "rows": before.get("rows", 0) + work.count("rows"),
            "results": before.get("results", 0) + outcome.rows,
            "instants": before.get("instants", 0) + outcome.instants,
            "joins": before.get("joins", 0) + outcome.joins,
            "seconds": before.get("seconds", 0.0) + time.perf_counter() - work.started,
            "entries": {
                "/".join(key): len(panes[key]) if key in panes else count
                for key, count in outcome.entries.items()
            },
            "entry_bytes": sum(held.nbytes for held in panes.values())
            if panes or not self._in_lanes
            else sum(map(bytes_in_memory, (*kept.state, *kept.retained))),
            "matches": {name: len(held) for name, held in self._kept_matches.items()},
            "match_bytes": sum(held.nbytes for held in self._kept_matches.values()),
            "where": self.where,
            "watermarks": watermarks,
            "waits_for": waits_for(
                watermarks, map(streams_of, inputs.plan.queries), before, time.time()
            ),
        }

    def committed(
        self, work: StepWork, intent: Intent, outcome: JoinAggOutcome, commit: Commit
    ) -> None:
        self._panes = None if self._in_lanes else self._kept_panes
        self._matches.committed(self._kept_matches)
        self._sets.commit()
        self._results = {
            query: replace(result, rows=()) for query, result in outcome.results.items()
        }
        self._tables.clean()
        queries = self._log.aggregations(intent.plan_version).query_by_id
        for name in outcome.switched:
            self._choices.settle(queries[name])
        self._forget_sets(intent.plan_version)

    def _forget_sets(self, plan_version: int) -> None:
        """A set stays what it is for a source as long as the plan has it; of all others nothing is remembered."""
        if self._sets_of_plan == plan_version:
            return
        planned = {source.id for source in self._inputs(plan_version).sources.values()}
        for query in self._queries():
            planned |= {source_of(query, slot).id for slot in range(len(query.inputs))}
        self._choices.keep_sets(planned)
        self._sets_of_plan = plan_version


def _files(last: Commit | None) -> list[Entry]:
    """The files of the last commit that hold entries."""
    live = last.live if last else {}
    entries = [entry for kind in (STATE, RETAINED) for entry in live.get(kind, ())]
    for entry in entries:
        if entry.get("source", ("panes", ""))[0] == "rows" and entry["source"][1][0] != "@":
            detail = "an earlier version of weft wrote it in another form"
            raise CheckpointError("DAMAGED", path=entry["name"], detail=detail)
    return [entry for entry in entries if "result_of" not in entry and not of_matches(entry)]


def _first(query: AggregationJoin, begins: Sequence[int]) -> int:
    """The first instant whose windows are complete."""
    return ALWAYS if max(begins) == ALWAYS else first_complete(query, begins)
