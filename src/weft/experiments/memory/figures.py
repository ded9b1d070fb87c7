"""Data of figures 2 to 5 of the Memory paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from weft.experiments.memory.parameters import FITTED, MemorySettings
from weft.experiments.memory.plans import CONFIGURATIONS, OURS, PAPER, SLC, Trace, TreeOutcome
from weft.experiments.memory.zipf_fit import zipf_exponent
from weft.experiments.reproduction import Data, Progress
from weft.optimizer.groupby.memory.eviction import LEMMA, RANKS
from weft.optimizer.groupby.trees.aggregate_tree import AggregateTree, Branch, GroupBySet, node_name
from weft.workloads.flows import PAIRS, epoch, random_pairs

TITLES = {
    "fig2": "Figure 2: records by rank of their group",
    "fig3": "Figure 3: evictions by memory, models beside measured",
    "fig4a": "Figure 4a: hash operations by memory",
    "fig4b": "Figure 4b: SLC, during the epoch and at its end",
    "fig4c": "Figure 4c: FPTAS, during the epoch and at its end",
    "fig5": "Figure 5: hash operations saved, by number of queries",
}
_SWEEPS = {"fig4a": CONFIGURATIONS, "fig4b": (SLC,), "fig4c": (OURS, PAPER)}
_RANKS = 80
_ALL: GroupBySet = frozenset()


class MemoryRun:
    """One run: traces, and what several figures use, measured once."""

    def __init__(
        self, figures: Sequence[str], settings: MemorySettings, progress: Progress
    ) -> None:
        self.figures = figures
        self.settings = settings
        self._progress = progress
        self._done = 0

    def step(self, what: str) -> None:
        self._progress(self._done, self.steps, what)
        self._done += 1

    def finish(self) -> None:
        self._progress(self.steps, self.steps, "done")

    @cached_property
    def steps(self) -> int:
        settings = self.settings
        sweep = {step for figure in self.figures for step in _SWEEPS.get(figure, ())}
        count = sum(figure in ("fig2", "fig3") for figure in self.figures)
        count += len(sweep) * len(settings.memories)
        if "fig5" in self.figures:
            count += len(CONFIGURATIONS) * len(settings.size_memories) * len(self.query_sets)
        return count

    @cached_property
    def trace(self) -> Trace:
        settings = self.settings
        return Trace(
            [epoch(settings.seed, number, settings.records) for number in range(settings.epochs)]
        )

    @cached_property
    def other_trace(self) -> Trace:
        return Trace([epoch(self.settings.other_seed, 0, self.settings.other_records)])

    @cached_property
    def query_sets(self) -> list[tuple[GroupBySet, ...]]:
        """Of figure 5; there is one set of all pairs."""
        sets_of_queries: list[tuple[GroupBySet, ...]] = []
        for size in self.settings.sizes:
            sets = 1 if size == len(PAIRS) else self.settings.sets
            sets_of_queries += [random_pairs(size, seed) for seed in range(1, sets + 1)]
        return sets_of_queries

    @cached_property
    def sweep(self) -> Callable[[str], list[TreeOutcome]]:
        by_configuration: dict[str, list[TreeOutcome]] = {}

        def outcomes(configuration: str) -> list[TreeOutcome]:
            if configuration not in by_configuration:
                by_configuration[configuration] = []
                for memory in self.settings.memories:
                    self.step(f"{configuration}, memory {memory:,.0f}")
                    queries = random_pairs(self.settings.queries)
                    by_configuration[configuration].append(
                        self.trace.outcome(queries, memory, configuration)
                    )
            return by_configuration[configuration]

        return outcomes


def ranks(run: MemoryRun) -> Data:
    """Figure 2: frequency by rank, and the fitted line."""
    run.step("frequencies")
    series = []
    for node in FITTED:
        counts = run.trace.statistics.frequencies(node)
        places = np.unique(np.geomspace(1, len(counts), _RANKS).astype(np.int64))
        series.append(
            {
                "set": node_name(node),
                "groups": len(counts),
                "alpha": zipf_exponent(counts),
                "rank": places.tolist(),
                "records": counts[places - 1].tolist(),
            }
        )
    return _data("fig2", run.settings, series)


def evictions(run: MemoryRun) -> Data:
    """Figure 3: the share of records that evict an entry, at the stream."""
    run.step("evictions")
    statistics, rows = run.trace.statistics, run.trace.statistics.tuples
    series = []
    for node in FITTED:
        # One child is enough to count what leaves: an operation of the child for each.
        tree = AggregateTree([Branch(node, False, [Branch(_ALL, True)])])
        entries = [max(1, round(share * statistics.groups(node))) for share in run.settings.shares]
        measured = [
            run.trace.run(tree, {node: float(held)}, OURS)[0].operations[node].evicted / rows
            for held in entries
        ]
        model = run.trace.models[OURS](node)
        alpha = statistics.alpha(node)
        series.append(
            {
                "set": node_name(node),
                "alpha": alpha,
                "share": list(run.settings.shares),
                "measured": measured,
                "lemma": LEMMA.evicted(entries, statistics.groups(node), alpha).tolist(),
                "ranks": RANKS.evicted(entries, statistics.groups(node), alpha).tolist(),
                "recency": [(float(model.leaving(held, rows)) - held) / rows for held in entries],
            }
        )
    return _data("fig3", run.settings, series)


def memory_sweep(figure: str, run: MemoryRun) -> Data:
    """Figure 4: operations of an epoch, for every memory and configuration."""
    series = [
        outcome.to_json()
        for configuration in _SWEEPS[figure]
        for outcome in run.sweep(configuration)
    ]
    return _data(figure, run.settings, series)


def query_sweep(run: MemoryRun) -> Data:
    """Figure 5: what FPTAS saves of SLC's operations, on average over the sets of a size."""
    counted: dict[tuple[str, float, int], list[float]] = {}
    for queries in run.query_sets:
        for memory in run.settings.size_memories:
            for configuration in CONFIGURATIONS:
                run.step(f"{len(queries)} queries, {configuration}, memory {memory:,.0f}")
                operations = run.other_trace.outcome(queries, memory, configuration).counted
                counted.setdefault((configuration, memory, len(queries)), []).append(operations)
    sizes = run.settings.sizes
    series = [
        {
            "configuration": configuration,
            "memory": memory,
            "queries": list(sizes),
            "saved": [
                float(np.mean([1 - ours / theirs for ours, theirs in zip(*pair)]))
                for pair in (
                    (counted[configuration, memory, size], counted[SLC, memory, size])
                    for size in sizes
                )
            ],
            "counted": [counted[configuration, memory, size] for size in sizes],
            "slc": [counted[SLC, memory, size] for size in sizes],
        }
        for configuration in (OURS, PAPER)
        for memory in run.settings.size_memories
    ]
    return _data("fig5", run.settings, series)


def _data(figure: str, settings: MemorySettings, series: list[dict[str, Any]]) -> Data:
    return {
        "figure": figure,
        "title": TITLES[figure],
        "settings": settings.to_json(),
        "series": series,
    }
