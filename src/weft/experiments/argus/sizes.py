"""The weighted size of a network (QNS, figure 15).

The paper says that selections weigh less than joins, and nodes of lower join levels more, but not how
much. Here a join on level l weighs 4 / l, a selection 1 / (l + 1); sources weigh nothing.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

from weft.algebra.network.plan import NetworkNode, NetworkPlan

JOIN_WEIGHT: Final = 4.0
SELECTION_WEIGHT: Final = 1.0


@dataclass(frozen=True)
class NetworkSize:
    """Nodes by kind, and the weighted sum."""

    joins: int
    selections: int
    weighted: float
    joins_by_level: tuple[int, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "joins": self.joins,
            "selections": self.selections,
            "weighted": self.weighted,
            "joins_by_level": list(self.joins_by_level),
        }


def network_size(plan: NetworkPlan) -> NetworkSize:
    """The size of a plan's network."""
    kinds = Counter(node.kind for node in plan.nodes)
    levels = Counter(node.level for node in plan.nodes if node.kind == "join")
    highest = max(levels, default=0)
    return NetworkSize(
        joins=kinds["join"],
        selections=kinds["selection"],
        weighted=sum(map(node_weight, plan.nodes)),
        joins_by_level=tuple(levels[level] for level in range(1, highest + 1)),
    )


def node_weight(node: NetworkNode) -> float:
    """What a node counts.

    >>> node_weight(NetworkNode("n1", "join", ("n0", "n0"), ("f", "f"), level=2))
    2.0
    """
    if node.kind == "join":
        return JOIN_WEIGHT / node.level
    if node.kind == "selection":
        return SELECTION_WEIGHT / (node.level + 1)
    return 0.0
