"""One run of the experiments: networks by configuration and number of queries, each made once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from weft.algebra.network.plan import NetworkPlan
from weft.bench.peers.in_full import FullRun, InFull, sampled
from weft.experiments.argus.configurations import CONFIGURATIONS
from weft.experiments.argus.execution import Executed, execute
from weft.experiments.argus.inputs import Inputs, inputs
from weft.experiments.argus.kept import Kept
from weft.experiments.argus.parameters import ArgusSettings, Scale
from weft.experiments.reproduction import Progress
from weft.optimizer.network.estimate import HeuristicEstimate
from weft.optimizer.network.generate import with_queries
from weft.optimizer.network.index import ScanIndex

MERGED, BY_NODE = "merged", "by node"
EXECUTIONS = (MERGED, BY_NODE)
"""How a network runs: joins of the same inputs and keys as one, as in weft, or each by itself."""


@dataclass(frozen=True)
class BuiltNetwork:
    """The network of the first queries, and the seconds that adding them took."""

    queries: int
    plan: NetworkPlan
    seconds: float


class ArgusRun:
    """Networks and their execution, as the figures need them."""

    def __init__(
        self,
        figures: Sequence[str],
        settings: ArgusSettings,
        progress: Progress,
        kept: Kept | None = None,
    ) -> None:
        """`kept`: what an earlier run has measured, and where this one keeps it."""
        self.figures = figures
        self._kept = kept or Kept()
        self.settings = settings
        self._progress = progress
        self._done = 0
        self._inputs: dict[Scale, Inputs] = {}
        self._networks: dict[tuple[Scale, str], list[BuiltNetwork]] = {}
        self._executed: dict[tuple[Scale, tuple[str, ...]], Executed] = {}

    def step(self, what: str) -> None:
        self._progress(self._done, self.steps, what)
        self._done += 1

    def finish(self) -> None:
        self._progress(self.steps, self.steps, "done")

    @cached_property
    def steps(self) -> int:
        counts = sum(len(scale.counts) for scale in self.settings.scales)
        workloads = len(self.settings.scales)
        total = workloads * len(CONFIGURATIONS)
        if "fig14" in self.figures or "fig15" in self.figures:
            total += counts * len(CONFIGURATIONS) * len(EXECUTIONS)
        if "baseline" in self.figures:
            total += workloads + 2 * sum(s.direct != s for s in self.settings.scales)
        return total

    def inputs(self, scale: Scale) -> Inputs:
        if scale not in self._inputs:
            self._inputs[scale] = inputs(scale, self.settings.seed)
        return self._inputs[scale]

    def networks(self, scale: Scale, configuration: str) -> list[BuiltNetwork]:
        """The networks of a configuration: the same one, after more and more queries."""
        key = scale, configuration
        if key not in self._networks:
            self.step(f"{scale.workload}, {configuration}: network")
            self._networks[key] = _networks(self.inputs(scale), configuration)
        return self._networks[key]

    def executed(
        self, scale: Scale, configuration: str, network: BuiltNetwork, how: str
    ) -> Executed:
        key = scale.workload, configuration, str(network.queries), how
        if (scale, key) not in self._executed:
            self.step(f"{scale.workload}, {configuration}, {network.queries} queries, {how}")
            self._executed[scale, key] = self._measured(scale, key, network, how)
        return self._executed[scale, key]

    def _measured(
        self, scale: Scale, key: tuple[str, ...], network: BuiltNetwork, how: str
    ) -> Executed:
        by_node = how == BY_NODE
        used = scale.by_node if by_node else scale
        of_earlier = self._kept.find(used, key)
        if of_earlier is not None:
            return of_earlier
        inputs = self.inputs(scale)
        executed = execute(inputs.by_node if by_node else inputs, network.plan, by_node=by_node)
        self._kept.add(used, key, executed)
        return executed

    def direct(self, scale: Scale) -> list[FullRun]:
        """Some of the queries in full over all rows, after the last increment."""
        self.step(f"{scale.workload}: queries in full on DuckDB")
        inputs = self.inputs(scale)
        database = InFull(inputs.stream, inputs.rows)
        chosen = sampled(inputs.queries, self.settings.direct_queries)
        return [database.run(query) for query in chosen]


def _networks(inputs: Inputs, configuration: str) -> list[BuiltNetwork]:
    options = CONFIGURATIONS[configuration]
    index, estimate = ScanIndex(), estimate_of(inputs)
    plan = NetworkPlan(version=0)
    networks: list[BuiltNetwork] = []
    added, seconds = 0, 0.0
    for count in inputs.scale.counts:
        started = time.perf_counter()
        plan = with_queries(
            plan, inputs.bound[added:count], (), (inputs.schema,), index, options, estimate
        )
        seconds += time.perf_counter() - started
        networks.append(BuiltNetwork(count, plan, seconds))
        added = count
    return networks


def estimate_of(inputs: Inputs) -> HeuristicEstimate:
    """Rows and distinct values of the history, as a database has them in its statistics."""
    history = inputs.history
    distinct = {
        (inputs.stream, name): float(len(history[name].unique())) for name in history.column_names
    }
    return HeuristicEstimate({inputs.stream: float(history.num_rows)}, distinct)
