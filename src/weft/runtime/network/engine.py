"""The engine of join queries: published rows in, new matches out.

In `read` it learns which published files the step consumes. In `compute` the kernel joins their rows with
history, on the driver (`driving`) or in tasks (`lanes`). What only Spark can project, Spark projects.
`retain` names the published files that are history now, and what the step has written of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from weft.algebra.network.bits import Bit, bits_of
from weft.algebra.network.plan import NetworkPlan
from weft.algebra.network.sets import NetworkQuery
from weft.kernel.failure import QueryFailure
from weft.kernel.network import Limits, Program, program
from weft.kernel.network.joins.history import NEVER, sizes
from weft.kernel.network.passing import FromSteps
from weft.kernel.network.rows import Seen
from weft.runtime.checkpoint.commits import (
    RETAINED,
    STATE,
    Commit,
    Entry,
    Intent,
    Staged,
)
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.network import history
from weft.runtime.network.backfill import SECTION, Backfill, Consumed, backfill_of
from weft.runtime.network.driving import DriverComputing
from weft.runtime.network.editions import Changes, decoded, encoded, first_step, forgotten, noted
from weft.runtime.network.history import HistoryFiles, Published
from weft.runtime.network.lanes.choice import use_lanes
from weft.runtime.network.lanes.computing import LaneComputing, Lanes, StepFiles
from weft.runtime.network.lanes.layout import unexpired
from weft.runtime.network.lanes.node_rows import BUCKETS
from weft.runtime.network.outcome import NetworkOutcome
from weft.runtime.network.passed import Passed
from weft.runtime.network.planner import NetworkPlanner
from weft.runtime.network.publication import NETWORK
from weft.runtime.network.unseen import EVENTS, Unseen
from weft.runtime.protocol.engine import Retained
from weft.runtime.protocol.follower import consumed
from weft.runtime.protocol.step import StepFailed, StepWork
from weft.runtime.tables import Bits, TableVersions
from weft.runtime.tasks import lane_totals

LOG = "@network"
"""The name of the network's log. No stream's name has an @."""

_NEVER = 1 << 62


@dataclass(frozen=True)
class _Consumed:
    """What a step consumes: files, by relation the steps at which editions changed, what the queries
    over derived streams have not seen, and how far it has come in each stream."""

    published: tuple[Consumed, ...] = ()
    changes: Mapping[str, Changes] = field(default_factory=dict)
    unseen: Unseen = field(default_factory=lambda: Unseen({}))
    passed: Passed = field(default_factory=Passed)

    @property
    def files(self) -> tuple[Published, ...]:
        return tuple(one.file for one in self.published)


class NetworkEngine:
    """Runs the network of all join queries."""

    def __init__(
        self,
        log: StreamLog,
        stream_log: Callable[[str], StreamLog],
        queries: Callable[[], Sequence[NetworkQuery]],
        planner: NetworkPlanner,
        tables: TableVersions,
        lanes: Lanes,
    ) -> None:
        self._log, self._stream_log = log, stream_log
        self._queries, self._planner = queries, planner
        self._tables, self._lanes = tables, lanes
        self._driver = DriverComputing(log, tables)
        self._program: Program | None = None
        self._consumed = _Consumed()
        self._in_lanes = lanes.settings.kernel == "lanes"

    @property
    def where(self) -> str:
        return "lanes" if self._in_lanes else "driver"

    def may_overlap(self, work: StepWork) -> bool:
        """A follower gains nothing: its input is files, which it need not read early."""
        return False

    # plans

    def serves(self, head: Commit | Staged) -> bool:
        plan = self._log.network(head.plan_version)
        return [query.id for query in plan.queries] == [query.id for query in self._queries()]

    def outgrown(self, head: Commit | Staged, last: Commit | None) -> bool:
        return False

    def new_plan(self, work: StepWork, last: Commit | None) -> int:
        with work.timed("planning"):
            return self._planner.new_plan(self._queries(), last)

    def replanned(self, failures: Sequence[str], version: int, last: Commit | None) -> int:
        return self.left_out(failures, version)

    def left_out(self, failures: Sequence[str], version: int) -> int:
        """The same nodes without these queries. The next new plan removes what nobody needs. A join that is
        published for a query is left out with it."""
        new_version = max(self._log.plan_versions()) + 1
        plan = self._log.network(version)
        joins = [query.id for query in plan.queries if set(query.members) & set(failures)]
        self._log.put_plan(plan.without([*failures, *joins], new_version))
        return new_version

    # a step

    def tables(self, version: int) -> dict[str, str]:
        bits = self._table_bits(self._log.network(version))
        return self._tables.versions(self._log.stream, bits)

    def _table_bits(self, plan: NetworkPlan) -> Bits:
        """The tables that queries read, and what Spark must compute of their rows."""
        names = {name for query in plan.queries for name in query.relations}
        bits: dict[str, dict[str, Bit]] = {
            name: {} for name in sorted(names - plan.stream_by_name.keys())
        }
        for query in plan.queries:
            for name in bits.keys() & set(query.relations):
                bits[name] |= {bit.name: bit for bit in bits_of(query, name)}
        return {name: tuple(computed.values()) for name, computed in bits.items()}

    def read(self, work: StepWork, intent: Intent, last: Commit | None) -> None:
        published: list[Consumed] = []
        changes = decoded(last.engine["editions"]) if last else {}
        plan = self._log.network(intent.plan_version)
        unseen = Unseen.of(plan, last.engine if last else {}, self._latest_events(last))
        passed = Passed.of(last.engine if last else {})
        for consumed_step in consumed(intent, last, self._stream_log, NETWORK):
            step, relation = consumed_step.step, consumed_step.relation
            passed.add(relation, step["watermark"], intent.watermark_before)
            if step["kind"] != "data":
                continue
            edition = consumed_step.edition(NETWORK)
            unseen.add(relation, edition, step["max_event_time"])
            if edition is None:
                continue
            sequence = step["sequence"]
            changes[relation] = noted(changes.get(relation, ()), [(sequence, edition)])
            published += [
                Consumed(Published(relation, sequence, entry), edition)
                for entry in consumed_step.files
            ]
        self._consumed = _Consumed(tuple(published), changes, unseen, passed)
        work.counted["rows"] = sum(one.file.entry["rows"] for one in published)

    def _latest_events(self, last: Commit | None) -> dict[str, int]:
        """Event times of streams that were consumed by steps which did not note them."""
        noted = last.engine.get(EVENTS, {}) if last else {}
        streams = [name for name in (last.inputs if last else {}) if name not in noted]
        commits = {name: self._stream_log(name).last() for name in streams}
        return {
            name: commit.max_event_time
            for name, commit in commits.items()
            if commit is not None and commit.max_event_time is not None
        }

    def compute(
        self, work: StepWork, intent: Intent, last: Commit | None, sequence: int
    ) -> NetworkOutcome:
        plan = self._log.network(intent.plan_version)
        ansi = intent.settings["ansi"].lower() == "true"
        limits = Limits(self._lanes.settings.most_matches, ansi=ansi)
        try:
            outcome = self._computed(work, plan, intent, last, sequence, limits)
        except QueryFailure as failure:
            if not failure.queries:
                raise
            raise StepFailed(
                _registered(plan, dict.fromkeys(failure.queries, failure))
            ) from failure
        except StepFailed as failed:
            raise StepFailed(_registered(plan, failed.failures)) from failed
        work.published = list(outcome.published)
        work.counted["late_rows"] = self._compiled(plan).late_rows(outcome.counters.late)
        return outcome

    def _computed(
        self,
        work: StepWork,
        plan: NetworkPlan,
        intent: Intent,
        last: Commit | None,
        sequence: int,
        limits: Limits,
    ) -> NetworkOutcome:
        compiled = self._compiled(plan)
        backfill = backfill_of(self._log.storage, plan, last, self._consumed.published)
        from_steps = self._from_steps(plan, backfill)
        new = self._consumed.files
        files = StepFiles(last, new, self._tables.entries(intent.tables), intent.tables)
        consumed = [file.retained(intent.watermark_before) for file in new]
        in_lanes = self._in_lanes or files.has_buckets
        every_file = [*files.base, *consumed]
        self._in_lanes = use_lanes(self._lanes.settings, compiled, every_file, in_lanes)
        early: NetworkOutcome | None = None
        if backfill.files:
            with work.timed("backfill"):
                early = self._backfilled(work, plan, intent, backfill, sequence, from_steps, limits)
            files = files.with_history(early.history)
        if self._in_lanes:
            self._driver.keep(None)
            computing = LaneComputing(self._lanes, work, self._log, compiled, sequence)
            outcome = computing.run(files, intent, from_steps, limits)
        else:
            outcome = self._driver.run(work, compiled, intent, files.last, new, from_steps, limits)
        return replace(outcome if early is None else early.then(outcome), backfill=backfill)

    def _backfilled(
        self,
        work: StepWork,
        plan: NetworkPlan,
        intent: Intent,
        backfill: Backfill,
        sequence: int,
        from_steps: FromSteps,
        limits: Limits,
    ) -> NetworkOutcome:
        """The files of history as new rows of the queries that see them, and of no others."""
        others = {query.id for query in plan.queries} - set(backfill.added)
        compiled = program(plan.without(others, plan.version))
        # History has been admitted, and windows that closed in the meantime are closed.
        earlier = replace(intent, watermark_before=NEVER, watermark=intent.watermark_before)
        attempt = f"{work.attempt}-backfill"
        if not self._in_lanes:
            driver = DriverComputing(self._log, self._tables)
            new = backfill.files
            return driver.run(
                work, compiled, earlier, None, new, from_steps, limits, attempt=attempt
            )
        tables = self._tables.entries(intent.tables)
        files = StepFiles(None, backfill.files, tables, intent.tables)
        computing = LaneComputing(
            self._lanes, work, self._log, compiled, sequence, only=backfill.added, attempt=attempt
        )
        outcome = computing.run(files, earlier, from_steps, limits)
        # The buckets are an index for these queries alone. The step makes one for all.
        self._log.storage.delete(f"{self._log.folder(BUCKETS)}/{work.name}-{attempt}")
        return outcome

    def _compiled(self, plan: NetworkPlan) -> Program:
        if self._program is None or self._program.version != plan.version:
            self._program = program(plan)
        return self._program

    def _from_steps(self, plan: NetworkPlan, backfill: Backfill) -> FromSteps:
        """By query and relation, the steps whose rows it sees; only where there are older ones."""
        from_steps: dict[str, dict[str, Seen]] = {}
        for query in plan.queries:
            for relation in query.relations:
                changes = self._consumed.changes.get(relation, ())
                first = first_step(changes, query.id)
                seen = backfill.steps(query.id, relation, first)
                if changes and (first is None or first > changes[0][0] or seen is not None):
                    starts = from_steps.setdefault(query.id, {})
                    only = _NEVER if first is None else first
                    starts[relation] = only if seen is None else seen
        return from_steps

    def retain(
        self, work: StepWork, intent: Intent, outcome: NetworkOutcome, last: Commit | None
    ) -> Retained:
        plan = self._log.network(intent.plan_version)
        compiled = self._compiled(plan)
        files = HistoryFiles(self._log, work.name, work.attempt, compiled, intent.tables)
        before = last.live if last else {}
        consumed = [file.retained(intent.watermark_before) for file in self._consumed.files]
        old_state, written = before.get(STATE, ()), outcome.history
        entries = (*before.get(RETAINED, ()), *consumed, *old_state, *written)
        needed = history.unexpired(entries, compiled, intent.watermark)
        kept = files.compacted(needed, intent.watermark)
        state = tuple(entry for entry in kept if "above" not in entry)
        retained = tuple(entry for entry in kept if "above" in entry)
        buckets = tuple(unexpired(outcome.buckets, intent.watermark))
        old_buckets = before.get(BUCKETS, ())
        names = {entry["name"] for entry in (*state, *buckets)}
        oldest = _oldest_steps(kept)
        changes = {
            relation: forgotten(steps, oldest.get(relation, _NEVER))
            for relation, steps in self._consumed.changes.items()
        }
        everything = (*old_state, *written, *old_buckets, *outcome.buckets)
        return Retained(
            live={RETAINED: retained, STATE: state, BUCKETS: buckets},
            dead=[entry for entry in everything if entry["name"] not in names],
            section={
                "editions": encoded(changes),
                "mark": intent.watermark,
                "latest": None,
                BUCKETS: dict(outcome.layouts) if self._in_lanes else None,
                SECTION: outcome.backfill.section(oldest),
                **self._consumed.unseen.section(plan),
                **self._consumed.passed.section(self._consumed.unseen.of_members(plan)),
            },
            late=last.late if last else {},
            metrics=self._metrics(last, work, outcome, compiled, kept),
        )

    def _metrics(
        self,
        last: Commit | None,
        work: StepWork,
        outcome: NetworkOutcome,
        compiled: Program,
        kept: Sequence[Entry],
    ) -> dict[str, object]:
        """What the network has done so far, by node for the nodes that it has now, and its history."""
        before = last.metrics if last else {}
        counters = outcome.counters
        rows = {node: before.get("nodes", {}).get(node, 0) for node in compiled.fed}
        for node, count in counters.rows.items():
            rows[node] += count
        held = _history(outcome, compiled, kept)
        lanes = {name: before[name] for name in ("lane_weights", "lane_seconds") if name in before}
        if self._in_lanes:
            lanes = lane_totals(before, self._lanes.weights, outcome.lane_seconds)
        return {
            **lanes,
            "rows": before.get("rows", 0) + work.count("rows"),
            "results": before.get("results", 0) + outcome.rows,
            "late_rows": before.get("late_rows", 0) + work.count("late_rows"),
            "candidates": before.get("candidates", 0) + sum(counters.candidates.values()),
            "seconds": before.get("seconds", 0.0) + time.perf_counter() - work.started,
            "nodes": {node: count for node, count in rows.items() if count},
            "where": self.where,
            "history": {
                compiled.node_by_id[name].roots[0]: size
                for name, size in held.items()
                if name in compiled.node_by_id
            },
            "history_rows": sum(count for count, _ in held.values()),
            "history_bytes": sum(size for _, size in held.values())
            + sum(
                shown.nbytes for shown in (outcome.state.emitted.values() if outcome.state else ())
            ),
        }

    def committed(
        self, work: StepWork, intent: Intent, outcome: NetworkOutcome, commit: Commit
    ) -> None:
        self._driver.keep(outcome.state)
        self._tables.clean()


def _registered(plan: NetworkPlan, failures: Mapping[str, QueryFailure]) -> dict[str, QueryFailure]:
    """Failures by the queries that users have registered: of a published join, by those over it."""
    return {
        name: failure
        for query, failure in failures.items()
        for name in (plan.query_by_id[query].members or (query,))
    }


def _oldest_steps(entries: Sequence[Entry]) -> dict[str, int]:
    """By relation, the step of the oldest row in history."""
    oldest: dict[str, int] = {}
    for entry in entries:
        for relation, step in entry.get("oldest", {}).items():
            oldest[relation] = min(step, oldest.get(relation, step))
    return oldest


def _history(
    outcome: NetworkOutcome, compiled: Program, kept: Sequence[Entry]
) -> dict[str, tuple[int, int]]:
    """Rows and bytes of the history of every physical node: in memory, or else in files."""
    if outcome.state is not None:
        return {name: sizes(chunks) for name, chunks in outcome.state.history.items()}
    held: dict[str, tuple[int, int]] = {}
    for entry in kept:
        kind, name = history.kind_of(entry)
        if kind != "distinct":
            rows, size = held.get(name, (0, 0))
            held[name] = rows + entry["rows"], size + entry["size"]
    return held
