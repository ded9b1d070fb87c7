"""What EXPLAIN shows of aggregation joins: their plans by what the checkpoint and the statistics say, and what is kept for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.algebra.joinagg.matches import matches_id
from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.sources import Source, row_store, source_of
from weft.algebra.network.plan import NetworkPlan
from weft.explain import AggregationView, MatchedView
from weft.explain.aggregations import sharing
from weft.kernel.network import program
from weft.runtime.joinagg.choices import Choices
from weft.runtime.joinagg.matches.late_joins import LateJoin
from weft.runtime.joinagg.waiting import slowest, streams_of


def aggregation_views(
    queries: Sequence[AggregationJoin],
    choices: Choices,
    streams: Iterable[str],
    metrics: Mapping[str, Any],
    lanes: tuple[float, ...],
    network: NetworkPlan | None,
) -> list[AggregationView]:
    """Aggregation joins over streams. `metrics`: what their last commit counted; `lanes`: the weights of the lanes, if joins
    run in lanes; `network`: that of join queries and matches."""
    plans = {query.id: choices.planned(query) for query in queries}
    shared = sharing(queries, plans)
    entries, watermarks = metrics.get("entries", {}), metrics.get("watermarks", {})
    late_joins = {query.id: choices.late_join(query) for query in queries}
    matched = any(late_join.slots for late_join in late_joins.values())
    joins = _physical_joins(network) if network is not None and matched else []
    finer: dict[str, Source] = {}
    for stream in streams:
        served = choices.served(queries, stream)
        finer |= {name: by for name, by in served.items() if by.id != name}
    return [
        AggregationView(
            query,
            plans[query.id],
            choices.priced(query),
            shared[query.id],
            choices.forced,
            tuple(
                entries.get(_kept_as(source_of(query, slot), early=early))
                for slot, early in enumerate(plans[query.id])
            ),
            tuple(
                finer.get(source_of(query, slot).id) if early else None
                for slot, early in enumerate(plans[query.id])
            ),
            slowest(streams_of(query), watermarks),
            _matched(query, late_joins[query.id], metrics, joins),
            lanes,
        )
        for query in queries
    ]


def _kept_as(source: Source, *, early: bool) -> str:
    """Under which name the metrics count the entries of an input."""
    return f"panes/{source.id}" if early else f"rows/{row_store(source)}"


def _matched(
    query: AggregationJoin,
    late_join: LateJoin,
    metrics: Mapping[str, Any],
    joins: Sequence[Mapping[str, str]],
) -> MatchedView | None:
    """The late inputs that the network joins, or why it cannot. `joins` are the network's physical joins."""
    if late_join.refused:
        return MatchedView(refused=late_join.refused)
    if not late_join.slots:
        return None
    own = matches_id(query.id, late_join.slots)
    held = metrics["matches"].get(own, 0) if "matches" in metrics else None
    others = {id_: name for join in joins if own in join for id_, name in join.items()}
    others.pop(own, None)
    return MatchedView(late_join.slots, "", held, tuple(sorted(others.values())))


def _physical_joins(network: NetworkPlan) -> list[Mapping[str, str]]:
    """Of each physical join the queries that get rows from it: what people call them, by their ids."""
    compiled = program(network)
    return [
        {
            query: network.query_by_id[query].shown_name
            for root in node.roots
            for query in compiled.fed[root]
        }
        for node in compiled.nodes
        if node.join is not None
    ]
