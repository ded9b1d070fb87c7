"""From bound queries to one shared plan: GTWeave.

From: the TriOps paper, section VI (Algorithm 2), as a pipeline of passes over a plan. It begins with
a draft, in which every group-by set is computed from the stream by itself. Every pass is a pure
function from a plan to a plan, gives back the same object if it changes nothing, and can be switched
off without changing a result. After each, the plan is checked (`invariants`).

Departures from Algorithm 2. The paper weaves all queries below a first-level node together, and
drops an inner node whose queries fall into different groups. Here every node weaves its own queries:
a node's state is its own fragments, so no group needs to reach over two nodes, and a tree may change
while windows are open. The paper keeps one index of signatures before every operator; here every
node's shards carry the columns that its predicates need, and level 2 inverts them.

With three levels (TriOps) a node serves all its groups, and groups with coarser edges than the
node's get fragments of their own at level 2. With two levels (TwoOps) every part has a node.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from weft.algebra.nodes.reads import nodes_read
from weft.algebra.plan import Retired, SharedPlan, WeaveGroup, member_id
from weft.algebra.query import Query, StreamSchema
from weft.errors import RunError
from weft.optimizer.draft import (
    coarse_fragments,
    drawn,
    drawn_nodes,
    queries_by_node,
    weave_groups,
)
from weft.optimizer.invariants import broken_invariants
from weft.optimizer.weaving import OnePart, Weaving

_logger = logging.getLogger(__name__)

Pass = Callable[[SharedPlan, Weaving], SharedPlan]


def predicates(plan: SharedPlan, weaving: Weaving) -> SharedPlan:
    """Give every node an index of its predicates, and divide the queries of a group-by set by the
    attributes that they select by. Off: one node for all of them, and a bit per predicate."""
    if all(query.predicate is None for query in plan.queries):
        return plan
    return drawn(plan, indexed=True)


def windows(plan: SharedPlan, weaving: Weaving) -> SharedPlan:
    """Weave the queries of every node into groups that read the same fragments, as the window
    optimizer chooses. Off: all read the node's own."""
    by_node = queries_by_node(plan)
    groups: list[WeaveGroup] = []
    members_of: dict[str, tuple[str, ...]] = {}
    for node, readers in by_node.items():
        woven = weaving.parts(readers)
        parts = [part for part in woven.parts if part]
        several_nodes = woven.levels == 2 and len(parts) > 1
        has_coarse = (len(parts) > 1 or woven.coarse) and not several_nodes
        for part in parts:
            members = tuple(sorted(query.id for query in part)) if several_nodes else ()
            members_of |= dict.fromkeys(members, members)
            coarse = coarse_fragments(part) if has_coarse else None
            groups += weave_groups(member_id(node, members), part, coarse)
    if members_of:
        active = [query for readers in by_node.values() for query in readers]
        indexed = "predicates" in plan.sharing.passes
        nodes = drawn_nodes(active, members_of, plan.stream, indexed)
        return replace(plan, nodes=tuple(nodes), groups=tuple(groups))
    return plan if tuple(groups) == plan.groups else replace(plan, groups=tuple(groups))


def groupby(plan: SharedPlan, weaving: Weaving) -> SharedPlan:
    """Arrange the nodes in an aggregate tree (`node_tree`): some are computed from the fragments of
    others, or of intermediates that no query asked for. Off: all from the stream."""
    readers: dict[str, list[Query]] = {node.id: [] for node in plan.nodes}
    for query in plan.queries:
        for node_id in nodes_read(plan, query):
            readers[node_id].append(query)
    nodes = tuple(weaving.tree(plan, readers))
    if nodes == plan.nodes:
        return plan
    fragments = {node.id: node.fragments for node in nodes}
    finer = {node.id for node in plan.nodes if fragments[node.id] != node.fragments}
    groups = tuple(
        replace(group, fragments=coarse_fragments(readers[group.node]))
        if group.fragments is None and group.node in finer
        else group
        for group in plan.groups
    )
    return replace(plan, nodes=nodes, groups=groups)


PASSES: tuple[Pass, ...] = (
    # First, because it decides which nodes there are: the other passes work node by node.
    predicates,
    # Before the tree, because with two levels a group has a node of its own, outside of the tree.
    windows,
    # Last, because a node that others are computed from must carry what they have come to need.
    groupby,
)
"""The pipeline. A pass is switched off by its function's name (the setting `passes`)."""


@dataclass(frozen=True)
class PassRun:
    """What a pass did to a plan, and how long it took."""

    name: str
    seconds: float
    changed: bool


def share(
    version: int,
    stream: StreamSchema,
    queries: Sequence[Query],
    complete_from: Mapping[str, int],
    weaving: Weaving | None = None,
    retired: tuple[Retired, ...] = (),
    *,
    passes: Sequence[Pass] = PASSES,
    report: Callable[[PassRun], None] | None = None,
) -> SharedPlan:
    """The shared plan of a stream's queries: the draft after those of the `passes` that the sharing
    names. Each is reported when it is done."""
    weaving = weaving or OnePart()
    asked = weaving.sharing.passes
    blank = replace(weaving.sharing, passes=())
    plan = SharedPlan(version, stream, tuple(queries), (), (), complete_from, retired, blank)
    plan = drawn(plan, indexed=False)
    made = [("draft", plan)]
    for transform in (transform for transform in passes if transform.__name__ in asked):
        name, before = transform.__name__, plan
        started = time.perf_counter()
        plan = transform(plan, weaving)
        run = PassRun(name, time.perf_counter() - started, plan is not before)
        _logger.debug("pass %s: %.3f s, changed: %s", name, run.seconds, run.changed)
        if report is not None:
            report(run)
        done = {*plan.sharing.passes, name}
        ran = tuple(name for name in asked if name in done)
        plan = replace(plan, sharing=replace(plan.sharing, passes=ran))
        if run.changed:
            made.append((name, plan))
    if next(broken_invariants(plan), None) is not None:
        raise _first_broken(made)
    return plan


def _first_broken(made: Sequence[tuple[str, SharedPlan]]) -> RunError:
    """Which pass broke a plan, as an error. The last plan is broken; those before it need not be."""
    for name, plan in made:
        problem = next(broken_invariants(plan), None)
        if problem is not None:
            return RunError("BROKEN_PLAN", stream=plan.stream.name, name=name, detail=problem)
    raise AssertionError("no plan is broken")
