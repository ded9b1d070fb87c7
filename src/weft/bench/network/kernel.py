"""Networks in the kernel alone: how the work of a step grows with queries, and without sharing of joins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.algebra.network.plan import NetworkPlan
from weft.experiments.argus.execution import Executed, execute
from weft.experiments.argus.inputs import Inputs, bound
from weft.experiments.argus.parameters import Scale
from weft.experiments.argus.run import estimate_of
from weft.optimizer.network.generate import with_queries
from weft.optimizer.network.index import ScanIndex
from weft.optimizer.network.options import Options
from weft.workloads.categories import JoinSql
from weft.workloads.fed import stream as fed


@dataclass(frozen=True)
class Grown:
    """A network of so many queries, and what it did."""

    queries: int
    joins: int
    executed: Executed


def fed_inputs(queries: Sequence[JoinSql], history: int, increment: int, timed: int) -> Inputs:
    """Fed with these queries."""
    scale = Scale("fed", history, increment, timed, (len(queries),))
    rows = fed.transfers(records=scale.records)
    return Inputs(scale, fed.STREAM, rows, tuple(queries), fed.WATERMARK)


def grown(given: Inputs, options: Options, *, by_node: bool = False) -> Grown:
    """The network of all queries, run."""
    plan = with_queries(
        NetworkPlan(version=0),
        bound(given.queries, given.schema),
        (),
        (given.schema,),
        ScanIndex(),
        options,
        estimate_of(given),
    )
    joins = sum(node.kind == "join" for node in plan.nodes)
    return Grown(len(given.queries), joins, execute(given, plan, by_node=by_node))
