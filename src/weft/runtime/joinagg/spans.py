"""Up to which time each query was evaluated, and up to which one it is by a step: what all its own streams have reached.

Where the network joins late inputs, it is what the network has reached in their streams, if matches are complete for the next instant. If they are not, the
inputs are joined at instants, and nobody waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.algebra.joinagg.plan import AggregationPlan
from weft.runtime.checkpoint.commits import Commit
from weft.runtime.joinagg.inputs import Inputs, Use
from weft.runtime.joinagg.matches.passed import NetworkPassed
from weft.runtime.joinagg.served import StreamServed
from weft.runtime.joinagg.waiting import streams_of

Span = tuple[int, int]
"""Up to which time a query was evaluated, and up to which one it is after the step."""
Slots = tuple[int, ...]


def spans_of(
    plan: AggregationPlan, served: Mapping[str, StreamServed], last: Commit | None
) -> dict[str, Span]:
    """The spans of queries by what their streams have reached."""
    before = last.engine["streams"] if last else {}
    marks: Mapping[str, int] | None = last.engine.get("marks") if last else {}
    spans = {}
    for query in plan.queries:
        streams = streams_of(query)
        reached = min(served.get(name, StreamServed()).watermark for name in streams)
        if marks is None:  # a commit of before queries had marks of their own
            since = int(last.engine["mark"]) if last else 0
        else:
            first = min(before[name]["watermark"] if name in before else 0 for name in streams)
            since = marks.get(query.id, first)
        spans[query.id] = since, max(since, reached)
    return spans


def complete_matches(
    inputs: Inputs,
    network: NetworkPassed,
    spans: Mapping[str, Span],
    has_late: Callable[[Use], bool | None],
) -> dict[str, Slots]:
    """By query the inputs of which the network finds all matches that instants need from now on. `has_late`: whether late rows are kept for an
    input; None: it is not known which are, and so which rows have matches."""
    complete: dict[str, Slots] = {}
    for name, slots in inputs.plan.matched.items():
        query, (since, _) = inputs.plan.query_by_id[name], spans[name]
        begin = network.complete_from(query, slots)
        if begin is None or begin > since // query.step * query.step + query.step:
            continue
        uses = [use for slot in slots if (use := inputs.uses[name][slot]) is not None]
        if all(has_late(use) is not None for use in uses):
            complete[name] = slots
    return complete


def spans_with_matches(
    plan: AggregationPlan,
    matched: Mapping[str, Slots],
    network: NetworkPassed,
    spans: Mapping[str, Span],
) -> dict[str, Span]:
    """The spans of queries whose matches the network finds."""
    found: dict[str, Span] = {}
    for name, slots in matched.items():
        since, now = spans[name]
        reached = network.reached(plan.query_by_id[name], slots)
        found[name] = since, max(since, min(now, reached))
    return found
