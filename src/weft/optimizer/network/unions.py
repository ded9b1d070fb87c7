"""Adds a query to a network: the nodes of its branches, and their union where there are several.

ARGUS, section 5.1: a union node can be shared if its parents are a subset of the query's. The largest
such node takes the place of its parents among the query's, until there is none. What is left has a new
union node. Its parents are in the order of their making, so the order of branches does not matter.

Sound: a union has no conditions and no columns of its own, so its rows are those of its parents in any
context. Time: one look-up for each union on the way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from weft.algebra.network.sets import NetworkQuery, placed
from weft.optimizer.network.network import Network, number_of
from weft.optimizer.network.options import Options
from weft.optimizer.network.sharing import NO_INPUT, Part, computed


def add_query(network: Network, query: NetworkQuery, options: Options) -> None:
    """Add a query to a network, sharing what the options allow."""
    parts = []
    for first, branch in placed(query):
        part = computed(network, branch, options)
        inputs = (place if place == NO_INPUT else first + place for place in part.inputs)
        parts.append(Part(part.node, tuple(inputs)))
    whole = parts[0] if len(parts) == 1 else _united(network, parts, options)
    slots = tuple(whole.inputs.index(place) for place in range(len(query.inputs)))
    network.feed(query, whole.node, slots)
    network.release_left()


def _united(network: Network, parts: Sequence[Part], options: Options) -> Part:
    """The union of some parts."""
    while len(parts) > 1:
        union = _largest_within(network, parts) if options.share_joins else None
        if union is None:
            order = sorted(parts, key=lambda part: number_of(part.node))
            node = network.add_union([part.node for part in order])
            return Part(node, _inputs(order))
        parts = _replaced(parts, union, network.node(union).parents)
    return parts[0]


def _largest_within(network: Network, parts: Sequence[Part]) -> str | None:
    """The union of the network that computes most of the parts."""
    present = Counter(part.node for part in parts)
    fitting = [
        union
        for union in network.index.unions_of(list(present))
        if Counter(network.node(union).parents) <= present
    ]
    return max(
        fitting,
        key=lambda union: (len(network.node(union).parents), -number_of(union)),
        default=None,
    )


def _replaced(parts: Sequence[Part], union: str, parents: Sequence[str]) -> list[Part]:
    """The parts with a union in the place of its parents."""
    rest = list(parts)
    taken: list[Part] = []
    for parent in parents:
        part = next(part for part in rest if part.node == parent)
        rest.remove(part)
        taken.append(part)
    return [*rest, Part(union, _inputs(taken))]


def _inputs(parts: Sequence[Part]) -> tuple[int, ...]:
    return tuple(place for part in parts for place in part.inputs)
