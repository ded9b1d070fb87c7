"""The network generator: from a plan and changes of its queries to the next plan (ARGUS, section 5).

`with_queries` is for many changes at once; `added` and `dropped` are for one. Each gives a new plan and
brings the index along. An index that does not hold the given plan is rebuilt first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from weft.algebra.network.plan import NetworkPlan
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.query import StreamSchema
from weft.optimizer.network.estimate import Estimate, HeuristicEstimate
from weft.optimizer.network.index import NetworkIndex
from weft.optimizer.network.network import Network
from weft.optimizer.network.options import Options
from weft.optimizer.network.unions import add_query

_TOGETHER: Final = 200
"""How many queries are added before others may write to the index's database."""


def with_queries(
    plan: NetworkPlan,
    queries: Sequence[NetworkQuery],
    dropped: Collection[str],
    streams: Sequence[StreamSchema],
    index: NetworkIndex,
    options: Options,
    estimate: Estimate,
) -> NetworkPlan:
    """The plan after queries were dropped (by id) and others added."""
    with index.changing():
        network = opened(plan, index, estimate)
        network.release_unused()
        network.put_streams(streams)
        network.put_looked_up([*plan.queries, *queries])
        replaced = _replaced(plan, queries, dropped)
        for query, before in replaced:
            feed = plan.feed_by_query[before]
            network.feed(query, feed.node, feed.slots)
        taken_over = {query.id for query, _ in replaced}
        queries = [query for query in queries if query.id not in taken_over]
        for query_id in dropped:
            network.drop(query_id)
    for start in range(0, len(queries), _TOGETHER):
        with index.changing():
            for query in queries[start : start + _TOGETHER]:
                add_query(network, query, _options_for(query, options))
    changed = network.frozen()
    index.settle(changed)
    return changed


def _options_for(query: NetworkQuery, options: Options) -> Options:
    """A query with backfill has joins of its own: those of others have forgotten, or never had, some of the
    rows that it sees."""
    return replace(options, share_joins=False) if query.backfill else options


def _replaced(
    plan: NetworkPlan, queries: Sequence[NetworkQuery], dropped: Collection[str]
) -> list[tuple[NetworkQuery, str]]:
    """The joins that are published for other queries than before, with the ids of those that they replace.
    They take over the nodes, and with them the history."""
    old = [plan.query_by_id[query_id] for query_id in dropped]
    before = {query.name: query.id for query in old if query.members}
    return [
        (query, before[query.name]) for query in queries if query.members and query.name in before
    ]


def added(
    plan: NetworkPlan,
    query: NetworkQuery,
    streams: Sequence[StreamSchema],
    index: NetworkIndex,
    options: Options,
    estimate: Estimate,
) -> NetworkPlan:
    """The plan with one more query."""
    return with_queries(plan, [query], (), streams, index, options, estimate)


def dropped(plan: NetworkPlan, query_ids: Collection[str], index: NetworkIndex) -> NetworkPlan:
    """The plan without some queries and the nodes that only they needed."""
    return with_queries(plan, (), query_ids, (), index, Options(), HeuristicEstimate())


def rebuilt(plan: NetworkPlan, index: NetworkIndex) -> None:
    """Fill an index from a plan, whatever it held before."""
    with index.changing():
        index.clear()
        index.add(Network(plan, index, HeuristicEstimate()).entries)
        index.settle(plan)


def opened(plan: NetworkPlan, index: NetworkIndex, estimate: Estimate) -> Network:
    """A plan's network, to be changed, with an index that holds it."""
    if not index.holds(plan):
        rebuilt(plan, index)
    return Network(plan, index, estimate)
