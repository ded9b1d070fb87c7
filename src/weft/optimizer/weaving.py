"""Which queries of a node read the same fragments, chosen by a window optimizer under a model.

The models of the papers choose by operations per second; `calibrated`, the default, by the seconds
that weft itself takes (`windows.spans`). With TriOps a node serves all groups; where TriOps does
not pay (one group, or fewer rows than edges), TwoOps is the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from weft.algebra.plan import Fragments, SharedPlan, Sharing, base_of
from weft.algebra.query import Query
from weft.errors import RunError
from weft.optimizer.share import Parts
from weft.optimizer.windows.calibration import calibrated
from weft.optimizer.windows.cost import MODELS, TriOps, TwoOps, triops_pays
from weft.optimizer.windows.edges import edge_rate
from weft.optimizer.windows.grouping import Partition, canonical, grouping
from weft.optimizer.windows.optimizers import OPTIMIZERS
from weft.optimizer.windows.slices import slices
from weft.optimizer.windows.spans import OpenSpans
from weft.optimizer.windows.workload import Windowed, Workload

CALIBRATED = "calibrated"
MODEL_NAMES = (CALIBRATED, *MODELS)
SECOND = 1_000_000


def check_sharing(optimizer: str, model: str) -> None:
    """Refuse names that there are not."""
    if optimizer not in OPTIMIZERS:
        known = ", ".join(OPTIMIZERS)
        raise RunError("UNKNOWN_SETTING", name="optimizer", value=optimizer, known=known)
    if model not in MODEL_NAMES:
        known = ", ".join(MODEL_NAMES)
        raise RunError("UNKNOWN_SETTING", name="model", value=model, known=known)


@dataclass(frozen=True)
class WindowWeaving:
    """A `Weaving` by cost."""

    sharing: Sharing

    def parts(self, queries: Sequence[Query]) -> Parts:
        """The queries of a node by group, and how many levels run them."""
        workload = workload_of(queries)
        if self.sharing.model == CALIBRATED:
            return self._open_spans(queries, workload)
        optimizer = OPTIMIZERS[self.sharing.optimizer]
        rate = Fraction(self.sharing.rate)
        plan = optimizer(workload, rate, MODELS[self.sharing.model])
        levels = 2 if self.sharing.model == "twoops" else 3
        if levels == 3 and not triops_pays(rate, plan.edge_rate.value, len(plan.groups)):
            plan, levels = optimizer(workload, rate, TwoOps()), 2
        return Parts(levels, _by_group(queries, workload, plan.partition))

    def _open_spans(self, queries: Sequence[Query], workload: Workload) -> Parts:
        if self.sharing.optimizer == "shared":
            return Parts(3, [queries])
        if self.sharing.optimizer == "noshare":
            alone = tuple((each,) for each in range(len(workload.edge_sets)))
            return Parts(3, _by_group(queries, workload, alone))
        spans = open_spans(queries, workload, self.sharing)
        groups = spans.groups()
        coarse = len(groups) > 1 or not spans.as_written
        return Parts(3, _by_group(queries, workload, groups), coarse)


def sharing_cost(plan: SharedPlan, sharing: Sharing) -> float:
    """What a plan's weave groups cost by a model: operations, or seconds, per second."""
    total = 0.0
    for node, parts in parts_of(plan).items():
        queries = [query for part in parts for query in part]
        workload = workload_of(queries)
        places = dict(zip(workload.names, workload.edge_set_of.tolist(), strict=True))
        partition = canonical({places[query.id] for query in part} for part in parts)
        if sharing.model == CALIBRATED:
            constants = calibrated()
            total += sharing.rate * constants.row
            total += workload.result_rate * sharing.keys * constants.result
            total += open_spans(queries, workload, sharing).cost(partition)
        else:
            two_levels = len(parts) == 1 or plan.node_of(queries[0].id, node) != node
            model = TwoOps() if two_levels else TriOps()
            rate = Fraction(sharing.rate)
            total += float(grouping("plan", workload, rate, model, partition).cost)
    return total


def parts_of(plan: SharedPlan) -> dict[str, list[list[Query]]]:
    """The parts of every group-by set, by the name of its keys: queries with the same fragments."""
    found: dict[str, dict[tuple[str, Fragments | None], list[Query]]] = {}
    for group in plan.groups:
        parts = found.setdefault(base_of(group.node), {})
        members = [plan.query_by_id[name] for name in group.queries]
        parts.setdefault((group.node, group.fragments), []).extend(members)
    return {base: list(parts.values()) for base, parts in found.items()}


def fragment_rate(fragments: Fragments) -> float:
    """How many fragments end in a second, for every key."""
    if fragments.pane:
        return SECOND / fragments.pane
    return float(edge_rate(fragments.classes)) * SECOND


def workload_of(queries: Sequence[Query]) -> Workload:
    """The windows of queries, in microseconds; rates are per second."""
    return Workload.of((Windowed(q.id, q.window) for q in queries), unit=SECOND)


def open_spans(queries: Sequence[Query], workload: Workload, sharing: Sharing) -> OpenSpans:
    """weft's own cost of grouping these queries."""
    ranges = [0] * len(workload.edge_sets)
    for query, place in zip(queries, workload.edge_set_of.tolist(), strict=True):
        ranges[place] = max(ranges[place], query.window.range)
    fragments = slices(query.window for query in queries)
    panes = SECOND / fragments.pane if fragments.pane else None
    return OpenSpans(workload, tuple(ranges), sharing.keys, sharing.step, calibrated(), panes)


def _by_group(
    queries: Sequence[Query], workload: Workload, partition: Partition
) -> tuple[tuple[Query, ...], ...]:
    group_of = {each: number for number, sets in enumerate(partition) for each in sets}
    found: list[list[Query]] = [[] for _ in partition]
    for query, place in zip(queries, workload.edge_set_of.tolist(), strict=True):
        found[group_of[place]].append(query)
    return tuple(tuple(part) for part in found)
