"""What EXPLAIN shows of aggregation joins: their plans by what the checkpoint and the statistics say, and what is kept for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.sources import Source, row_store, source_of
from weft.explain import AggregationView
from weft.explain.aggregations import sharing
from weft.runtime.joinagg.choices import Choices
from weft.runtime.joinagg.waiting import slowest, streams_of


def aggregation_views(
    queries: Sequence[AggregationJoin],
    choices: Choices,
    streams: Iterable[str],
    metrics: Mapping[str, Any],
    lanes: tuple[float, ...],
) -> list[AggregationView]:
    """Aggregation joins over streams. `metrics`: what their last commit counted; `lanes`: the weights of the lanes, if joins
    run in lanes."""
    plans = {query.id: choices.planned(query) for query in queries}
    shared = sharing(queries, plans)
    entries, watermarks = metrics.get("entries", {}), metrics.get("watermarks", {})
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
            lanes,
        )
        for query in queries
    ]


def _kept_as(source: Source, *, early: bool) -> str:
    """Under which name the metrics count the entries of an input."""
    return f"panes/{source.id}" if early else f"rows/{row_store(source)}"
