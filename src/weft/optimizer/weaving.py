"""Which queries of a node read the same fragments, chosen by a window optimizer under a model.

The models of the papers choose by operations per second; `calibrated`, the default, by the seconds
that weft itself takes: `best` under it is `windows.spans`, the other optimizers minimize
`windows.cost.Calibrated`, which leaves out how long fragments stay open. With TriOps a node serves
all groups; where TriOps does not pay (one group, or fewer rows than edges), TwoOps is the plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Protocol

from weft.algebra.plan import PASS_NAMES, Fragments, Node, SharedPlan, Sharing
from weft.algebra.query import Query
from weft.errors import RunError
from weft.optimizer.edges.slices import slices
from weft.optimizer.edges.workload import Windowed, Workload
from weft.optimizer.groupby.planner import ALLOCATORS
from weft.optimizer.node_tree import NATIVE, UNLIMITED, Arranging
from weft.optimizer.windows.calibration import calibrated
from weft.optimizer.windows.cost import (
    MODELS,
    Calibrated,
    CostModel,
    TriOps,
    TwoOps,
    triops_pays,
)
from weft.optimizer.windows.grouping import Partition
from weft.optimizer.windows.optimizers import OPTIMIZERS
from weft.optimizer.windows.spans import OpenSpans

CALIBRATED = "calibrated"
MODEL_NAMES = (CALIBRATED, *MODELS)
SECOND = 1_000_000


@dataclass(frozen=True)
class Parts:
    """The queries of a node in parts; the queries of a part read the same fragments.

    With two `levels` every part has a node of its own. With three, one node serves all parts, and
    each of several parts has coarse fragments; a single part has them if it is `coarse`, because
    the node writes panes that are finer than its edges.
    """

    levels: int
    parts: Sequence[Sequence[Query]]
    coarse: bool = False


class Weaving(Protocol):
    """Chooses which queries of a node read the same fragments, and the tree of the nodes."""

    @property
    def sharing(self) -> Sharing: ...
    def parts(self, queries: Sequence[Query]) -> Parts: ...
    def tree(self, plan: SharedPlan, readers: Mapping[str, Sequence[Query]]) -> Sequence[Node]:
        """A plan's nodes with their parents, and intermediates; parents first."""
        ...


class OnePart:
    """All queries of a node read the node's own fragments (Shared Time Slices), and all nodes
    read the stream."""

    def __init__(self, sharing: Sharing | None = None) -> None:
        self.sharing = sharing or Sharing()

    def parts(self, queries: Sequence[Query]) -> Parts:
        return Parts(3, [queries])

    def tree(self, plan: SharedPlan, readers: Mapping[str, Sequence[Query]]) -> Sequence[Node]:
        return plan.nodes


def check_sharing(sharing: Sharing) -> None:
    """Refuse unknown names, and a memory budget that is not a number of groups."""
    optimizer, model = sharing.optimizer, sharing.model
    for name in sharing.passes:
        if name not in PASS_NAMES:
            raise RunError(
                "UNKNOWN_SETTING", name="passes", value=name, known=", ".join(PASS_NAMES)
            )
    if sharing.allocator not in (NATIVE, *ALLOCATORS):
        choices = ", ".join((NATIVE, *ALLOCATORS))
        raise RunError("UNKNOWN_SETTING", name="allocator", value=sharing.allocator, known=choices)
    budget = sharing.memory_budget
    if budget is not None and (isinstance(budget, bool) or budget < 0):
        choices = "a number of groups from 0 on, or none"
        raise RunError("UNKNOWN_SETTING", name="memory_budget", value=budget, known=choices)
    if optimizer not in OPTIMIZERS:
        choices = ", ".join(OPTIMIZERS)
        raise RunError("UNKNOWN_SETTING", name="optimizer", value=optimizer, known=choices)
    if model not in MODEL_NAMES:
        choices = ", ".join(MODEL_NAMES)
        raise RunError("UNKNOWN_SETTING", name="model", value=model, known=choices)


GroupCounts = Callable[[frozenset[str], float], float]
"""How many groups a set of keys has among a number of rows."""


def arranging(sharing: Sharing, statistics: GroupCounts | None = None) -> Arranging:
    """The search for an aggregate tree, with what is known of the stream."""
    memory = UNLIMITED if sharing.memory_budget is None else sharing.memory_budget
    counts = statistics or assumed_groups(sharing.keys)
    return Arranging(counts, sharing.rate, sharing.step, memory, sharing.allocator)


def assumed_groups(groups_per_key: float) -> GroupCounts:
    """As many groups for every key, independent of each other.

    >>> assumed_groups(10)(frozenset({"a", "b"}), 1000)
    100.0
    """

    def groups(keys: frozenset[str], rows: float) -> float:
        return min(float(groups_per_key) ** len(keys), max(rows, 1.0))

    return groups


@dataclass(frozen=True)
class WindowWeaving:
    """A `Weaving` by cost."""

    sharing: Sharing
    statistics: GroupCounts | None = None

    def parts(self, queries: Sequence[Query]) -> Parts:
        """The queries of a node by group, and how many levels run them."""
        workload = workload_of(queries)
        if self.sharing.model == CALIBRATED and self.sharing.optimizer == "best":
            return self._by_open_spans(queries, workload)
        optimizer, model = OPTIMIZERS[self.sharing.optimizer], self._model()
        rate = Fraction(self.sharing.rate)
        plan = optimizer(workload, rate, model)
        pays = triops_pays(rate, plan.edge_rate.value, len(plan.groups))
        if isinstance(model, TriOps) and not pays:
            model = TwoOps()
            plan = optimizer(workload, rate, model)
        levels = 2 if isinstance(model, TwoOps) else 3
        return Parts(levels, _by_group(queries, workload, plan.partition))

    def tree(self, plan: SharedPlan, readers: Mapping[str, Sequence[Query]]) -> Sequence[Node]:
        """The nodes as an aggregate tree."""
        indexed = "predicates" in plan.sharing.passes
        return arranging(self.sharing, self.statistics).arranged(plan.nodes, readers, indexed)

    def _model(self) -> CostModel:
        if self.sharing.model == CALIBRATED:
            return Calibrated(self.sharing.keys, **asdict(calibrated()))
        return MODELS[self.sharing.model]

    def _by_open_spans(self, queries: Sequence[Query], workload: Workload) -> Parts:
        spans = open_spans(queries, workload, self.sharing)
        groups = spans.groups()
        coarse = len(groups) > 1 or not spans.as_written
        return Parts(3, _by_group(queries, workload, groups), coarse)


def parts_of(plan: SharedPlan) -> dict[tuple[str, Fragments | None], list[Query]]:
    """The queries that read the same fragments of the same node."""
    parts: dict[tuple[str, Fragments | None], list[Query]] = {}
    for group in plan.groups:
        members = [plan.query_by_id[name] for name in group.queries]
        parts.setdefault((group.node, group.fragments), []).extend(members)
    return parts


def workload_of(queries: Sequence[Query]) -> Workload:
    """The windows of queries, in microseconds; rates are per second."""
    return Workload.of((Windowed(q.id, q.window) for q in queries), unit=SECOND)


def open_spans(queries: Sequence[Query], workload: Workload, sharing: Sharing) -> OpenSpans:
    """weft's own cost of grouping these queries."""
    ranges = [0] * len(workload.edge_sets)
    for query, edge_set in zip(queries, workload.edge_set_of.tolist(), strict=True):
        ranges[edge_set] = max(ranges[edge_set], query.window.range)
    fragments = slices(query.window for query in queries)
    panes = SECOND / fragments.pane if fragments.pane else None
    return OpenSpans(workload, tuple(ranges), sharing.keys, sharing.step, calibrated(), panes)


def _by_group(
    queries: Sequence[Query], workload: Workload, partition: Partition
) -> tuple[tuple[Query, ...], ...]:
    group_of = {edge_set: number for number, sets in enumerate(partition) for edge_set in sets}
    parts: list[list[Query]] = [[] for _ in partition]
    for query, edge_set in zip(queries, workload.edge_set_of.tolist(), strict=True):
        parts[group_of[edge_set]].append(query)
    return tuple(tuple(part) for part in parts)
