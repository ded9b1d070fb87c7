"""Puts runs together: starts what is registered, and takes up changes while it runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from weft.algebra.numbered import numbered_name
from weft.catalog.store import QueryRecord
from weft.errors import RunError, WeftError
from weft.runtime.api.assembly import Assembly, Shared
from weft.runtime.api.bookkeeping import Bookkeeping
from weft.runtime.api.start_checks import check_start
from weft.runtime.cause import cause_of
from weft.runtime.checkpoint.lease import Lease
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.derived.leftovers import left_over
from weft.runtime.network.engine import LOG as NETWORK_LOG
from weft.runtime.protocol.follower import Follower
from weft.runtime.queries.registry import Registry
from weft.runtime.run.follower_run import FollowerRun
from weft.runtime.run.run import Run
from weft.runtime.settings import Settings
from weft.runtime.sinks.delivery import Sink


@dataclass(frozen=True)
class _Started:
    """What a run was started with, and the followers of its join queries and aggregation joins."""

    around: Shared
    trigger: Mapping[str, Any]
    network: Follower
    joins: FollowerRun
    aggregations: Follower
    aggregated: FollowerRun


class Supervisor:
    """The run of a weft, one at a time. `lock` keeps registrations and starts apart."""

    def __init__(
        self,
        spark: SparkSession,
        storage: Storage,
        registry: Registry,
        assembly: Assembly,
        bookkeeping: Bookkeeping,
        log: Callable[[str], StreamLog],
        lock: threading.RLock,
        settings: Settings,
    ) -> None:
        self._spark, self._storage, self._settings = spark, storage, settings
        self._registry, self._assembly, self._bookkeeping = registry, assembly, bookkeeping
        self._log, self._lock = log, lock
        self._run: Run | None = None
        self._started: _Started | None = None
        self._synced: Sequence[QueryRecord] | None = None
        self._derived: dict[str, FollowerRun] = {}
        """The runs of the derived streams, by name."""
        self._without_queries: set[str] = set()
        """Those of them that were put together without queries, only to let go what is left."""

    @property
    def running(self) -> bool:
        return self._run is not None and self._run.isActive

    def require_stopped(self) -> None:
        """Refuse a second run; let go of one that has ended by itself."""
        if self._run is not None:
            if self._run.isActive:
                raise RunError("ALREADY_RUNNING", owner="this process")
            self._run.finish()

    def start(self, sink: Sink, trigger: Mapping[str, Any]) -> Run:
        """Run all queries."""
        check_start(self._spark, self._storage, self._settings)
        lease = Lease(self._storage)
        lease.acquire()
        self._run = None
        try:
            return self._start(sink, trigger, lease)
        except BaseException:
            self._abandon(lease)
            raise

    def stop(self) -> None:
        """End the run, if there is one, and give back the lease."""
        with self._lock:
            run, self._run = self._run, None
        if run is not None:
            run.stop()

    def _abandon(self, lease: Lease) -> None:
        run, self._run = self._run, None
        try:
            if run is not None:
                run.stop()
        finally:
            lease.release()

    def _start(self, sink: Sink, trigger: Mapping[str, Any], lease: Lease) -> Run:
        run = Run(lease.release, self.sync)
        around = self._assembly.shared(lease, sink, run)
        network = self._assembly.network(around)
        aggregations = self._assembly.aggregations(around, network)
        assembled = [
            self._assembly.steppers(name, around, network, aggregations)
            for name in self._streams_to_run()
        ]
        joins = FollowerRun(network, [], self._spark)
        aggregated = FollowerRun(aggregations, [joins], self._spark)
        over_joins = [
            self._assembly.derived(name, around, network) for name in self._derived_to_run()
        ]
        members = [m for stream in assembled for m in (stream.leader, stream.rows)]
        for member in (*members, network, aggregations, *over_joins):
            member.check(self._spark)
            if member.last is not None:
                log = member.stepper.log
                plan = log.any_plan(member.last.plan_version)
                self._bookkeeping.planned(log.stream, plan, member.last.late)
        if not assembled and not self._registry.fallbacks():
            raise RunError("NOTHING_TO_RUN")
        self._started = _Started(around, trigger, network, joins, aggregations, aggregated)
        self._run = run
        self._synced = None
        for stream in assembled:
            self._assembly.add_to(run, stream, trigger, self._spark, joins, aggregated)
        if assembled:
            run.add_follower(joins)
            run.add_follower(aggregated)
        self._derived = {}
        self._without_queries = {f.name for f in over_joins} - {*self._registry.derived}
        for follower in over_joins:
            self._follow_join(run, follower, joins)
        self.sync()
        run.watch()
        return run

    def _streams_to_run(self) -> list[str]:
        """Streams with queries to share, or with windows still open."""
        return [
            name
            for name in self._registry.sources
            if self._registry.shared(name)
            or self._registry.shared(numbered_name(name))
            or any(name in query.relations for query in self._registry.joins())
            or any(name in query.relations for query in self._registry.aggregations())
            or self._log(name).begun
        ]

    def _derived_to_run(self) -> list[str]:
        """The derived streams with queries, and those that an earlier run has not let go."""
        left = left_over(self._storage, self._log, NETWORK_LOG)
        return list(dict.fromkeys([*self._registry.derived, *left]))

    def _follow_join(self, run: Run, follower: Follower, joins: FollowerRun) -> None:
        derived = FollowerRun(follower, [joins], self._spark)
        self._derived[derived.name] = derived
        run.add_follower(derived)

    def _let_go_derived(self, run: Run, network: Follower) -> None:
        """End the runs of derived streams without queries that have nothing left to do."""
        registered = self._registry.derived if self._derived else ()
        for name, derived in list(self._derived.items()):
            if name not in registered and derived.resting:
                self._end_derived(run, name, network)

    def _end_derived(self, run: Run, name: str, network: Follower) -> None:
        run.remove_follower(self._derived.pop(name))
        self._without_queries.discard(name)
        assert network.stepper.publisher is not None
        network.stepper.publisher.remove(name)

    def sync(self) -> None:
        """Start and stop streams, derived streams and plain queries as queries are registered and
        dropped."""
        with self._lock:
            run = self._run
            if run is None or not run.open:
                return
            if self._started is not None:
                self._let_go_derived(run, self._started.network)
            live = self._registry.live()
            if live is self._synced:
                return
            assert self._started is not None
            begun = self._started
            for name in set(self._streams_to_run()) - run.stream_names:
                assembled = self._assembly.steppers(
                    name, begun.around, begun.network, begun.aggregations
                )
                self._assembly.add_to(
                    run, assembled, begun.trigger, self._spark, begun.joins, begun.aggregated
                )
                for follower in (begun.joins, begun.aggregated):
                    if not follower.started:
                        run.add_follower(follower)
            for name in self._registry.derived:
                if name in self._without_queries:
                    self._end_derived(run, name, begun.network)
                if name not in self._derived:
                    derived = self._assembly.derived(name, begun.around, begun.network)
                    self._follow_join(run, derived, begun.joins)
            self._sync_fallbacks(run, begun.around.sink, begun.trigger)
            self._bookkeeping.save_copy()
            self._synced = live

    def _sync_fallbacks(self, run: Run, sink: Sink, trigger: Mapping[str, Any]) -> None:
        wanted = {record.id: (record, bound) for record, bound in self._registry.fallbacks()}
        for query_id in run.fallback_ids - wanted.keys():
            run.stop_fallback(query_id)
        for query_id, (record, bound) in wanted.items():
            if query_id in run.fallback_ids:
                continue
            try:
                run.start_fallback(self._assembly.fallback(record, bound, sink, trigger))
            except (PySparkException, WeftError) as error:
                self._registry.quarantine(query_id, cause_of(error))
        self._assembly.remove_dropped_fallbacks(sink)
