"""EXPLAIN of aggregation joins: the plan of each, what other plans would cost, and who shares its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.algebra.joinagg.query import AggregationInput, AggregationJoin
from weft.algebra.joinagg.sources import Source, row_store, source_of
from weft.explain.paragraph import item, lane_seconds_item
from weft.explain.wording import counted, duration, figure, instant, readable, some
from weft.optimizer.joinagg.choice import Choice
from weft.optimizer.joinagg.plans import Plan, plan_name

_NAMES, _PLANS, _LANES = 4, 8, 30


@dataclass(frozen=True)
class MatchedView:
    """The late inputs of an aggregation join that the query network joins."""

    slots: tuple[int, ...] = ()
    """None of them: the network cannot join them, and `refused` says why."""
    refused: str = ""
    held: int | None = None
    """How many matches are kept after the last step."""
    joined_with: tuple[str, ...] = ()
    """Other queries of the network whose rows the same physical joins find."""


@dataclass(frozen=True)
class AggregationView:
    """An aggregation join with its plan, and what is known of its costs and its state."""

    query: AggregationJoin
    plan: Plan
    priced: Choice
    """All plans that can be run, by what is known now."""
    shared_with: tuple[tuple[str, ...], ...]
    """By input: the other queries that read the same source in the same way."""
    forced: bool = False
    """Whether a setting chose the plan."""
    held: tuple[int | None, ...] = ()
    """By input: the entries that are kept for it after the last step."""
    finer: tuple[Source | None, ...] = ()
    """By input: the set that serves it, if it is not its own."""
    waits_for: Mapping[str, int | None] = field(default_factory=dict)
    """The streams of the query that hold the others back, with their watermarks; None: it has none yet."""
    matched: MatchedView | None = None
    """None: all inputs are joined at instants."""
    lanes: tuple[float, ...] = ()
    """The weights of the lanes, if joins run in lanes. Every lane has a share of all keys, by its weight."""

    @property
    def lane_costs(self) -> list[float] | None:
        """For each lane the predicted cost of an instant; None if it is not known, or if there are no lanes."""
        cost = self.cost
        if cost is None or not self.lanes:
            return None
        return [cost * weight / sum(self.lanes) for weight in self.lanes]

    @property
    def cost(self) -> float | None:
        return next((p.cost for p in self.priced.priced if p.plan == self.plan), None)


@dataclass(frozen=True)
class AggregationsMeasured:
    """What the last commit of all aggregation joins counted."""

    steps: int
    rows: int
    """The rows and panes that they have consumed."""
    results: int
    instants: int
    joins: int
    seconds: float | None = None
    where: str = "driver"
    """Where the joins of the last step ran: driver or lanes."""
    lane_seconds: tuple[float, ...] = ()
    """What each lane took, in all steps that ran in lanes."""


def measured_lines(measured: AggregationsMeasured) -> Iterator[str]:
    """What all aggregation joins together did."""
    yield f"aggregation joins, measured in {counted(measured.steps, 'step')}"
    per_second = ""
    if measured.seconds:
        per_second = f", {figure(measured.rows / measured.seconds)}/s while running"
    yield from item("rows", f"{measured.rows:,}{per_second}")
    yield from item("results", f"{measured.results:,}")
    joins = counted(measured.joins, "physical join")
    place = "in tasks" if measured.where == "lanes" else "on the driver"
    yield from item("instants", f"{measured.instants:,}, in {joins}, {place}")
    yield from lane_seconds_item(measured.lane_seconds)


def sharing(
    queries: Sequence[AggregationJoin], plans: dict[str, Plan]
) -> dict[str, tuple[tuple[str, ...], ...]]:
    """By query and input, who else reads the same."""
    readers: dict[tuple[str, bool], list[str]] = {}
    keys: dict[str, list[tuple[str, bool]]] = {}
    for query in queries:
        for slot in range(len(query.inputs)):
            source, early = source_of(query, slot), plans[query.id][slot]
            late_stream = not early and query.inputs[slot].window is not None
            key = (row_store(source) if late_stream else source.id, early)
            keys.setdefault(query.id, []).append(key)
            readers.setdefault(key, []).append(query.name)
    return {
        query.id: tuple(
            tuple(name for name in dict.fromkeys(readers[key]) if name != query.name)
            for key in keys[query.id]
        )
        for query in queries
    }


def aggregation_lines(view: AggregationView) -> Iterator[str]:
    """One aggregation join."""
    query = view.query
    emitted = "changes" if query.changes else "the whole result"
    yield f"aggregation join {query.name}: plan {plan_name(view.plan)}, {emitted} every {duration(query.step)}"
    for slot, entry in enumerate(query.inputs):
        yield from item(entry.alias, _input_text(view, slot, entry))
    if view.matched is not None:
        yield from item("joined", _matched_text(view, view.matched))
    why = "a setting chose the plan" if view.forced else "the cheapest plan when it was chosen"
    if view.cost is not None:
        why = f"{figure(view.cost)} µs per instant, {why}"
    yield from item("cost", why)
    if view.lane_costs is not None:
        costs = some([figure(cost) for cost in view.lane_costs], _LANES)
        lanes = counted(len(view.lanes), "lane")
        yield from item("lanes", f"{lanes}, µs per instant in each: {costs}")
    if view.waits_for:
        yield from item("waits", _waiting_text(view.waits_for))
    others = sorted((p for p in view.priced.priced if p.plan != view.plan), key=lambda p: p.cost)
    if others:
        listed = ", ".join(f"{plan_name(p.plan)} {figure(p.cost)}" for p in others[:_PLANS])
        rest = f", and {len(others) - _PLANS} more" if len(others) > _PLANS else ""
        yield from item("others", f"{listed}{rest}")


def _input_text(view: AggregationView, slot: int, entry: AggregationInput) -> str:
    keys = ", ".join(attribute.text for attribute in entry.attributes)
    if entry.window is None:
        how = "a table, merged by key" if view.plan[slot] else "a table, row by row"
    elif view.plan[slot]:
        pane = duration(entry.window.pane(view.query.step))
        how = f"early: panes of {pane} by ({keys})"
    else:
        how = f"late: rows with ({keys})"
    finer = view.finer[slot] if view.finer else None
    if finer is not None:
        how += f" from the set by ({', '.join(a.text for a in finer.attributes)})"
        if finer.selections:
            how += f" and {counted(len(finer.selections), 'selection')}"
    text = f"{entry.relation}{_window_text(entry)}, {how}"
    if view.shared_with[slot]:
        text += f", shared with {some(view.shared_with[slot], _NAMES)}"
    held = view.held[slot] if view.held else None
    if held is None:
        return text
    text += f"; {counted(held, 'entry', 'entries')} kept"
    endless = entry.window is not None and entry.window.kind == "landmark"
    return f"{text} for ever, they grow with its keys" if endless else text


def _matched_text(view: AggregationView, matched: MatchedView) -> str:
    """Which late inputs the network joins."""
    if matched.refused:
        return (
            f"anew at every instant, since the query network could not join them: {matched.refused}"
        )
    names = " and ".join(view.query.inputs[slot].alias for slot in matched.slots)
    text = f"{names} by the query network, each match once"
    if matched.held is not None:
        text += f"; {counted(matched.held, 'match', 'matches')} kept"
    if matched.joined_with:
        text += f"; in one physical join with {some(matched.joined_with, _NAMES)}"
    return text


def _matched_document(matched: MatchedView | None) -> dict[str, Any] | None:
    if matched is None:
        return None
    return {
        "inputs": list(matched.slots),
        "refused": matched.refused,
        "matches": matched.held,
        "joined_with": list(matched.joined_with),
    }


def _waiting_text(waits_for: Mapping[str, int | None]) -> str:
    """Which streams hold instants back, and what to do."""
    names = ", ".join(
        f"{name} ({'no rows yet' if mark is None else f'watermark {instant(mark)}'})"
        for name, mark in waits_for.items()
    )
    return (
        f"for {names}: an instant comes when the watermarks of all its streams have passed it. "
        "If it is idle, let it send a row with a later event time, or drop the query"
    )


def _selections(source: Source | None) -> list[str] | None:
    return None if source is None else [readable(one.sql) for one in source.selections]


def _attributes(source: Source | None) -> list[str] | None:
    return None if source is None else [attribute.text for attribute in source.attributes]


def _window_text(entry: AggregationInput) -> str:
    if entry.window is None:
        return ""
    if entry.window.kind == "landmark":
        return " [until now]"
    kind = " tumbling" if entry.window.kind == "tumbling" else ""
    return f" [{duration(entry.window.length)}{kind}]"


def aggregation_document(view: AggregationView) -> dict[str, Any]:
    """One aggregation join as JSON."""
    query = view.query
    return {
        "query": query.name,
        "id": query.id,
        "step": query.step,
        "emit": "changes" if query.changes else "full",
        "plan": plan_name(view.plan),
        "early": list(view.plan),
        "forced": view.forced,
        "waits_for": dict(view.waits_for),
        "matched": _matched_document(view.matched),
        "cost": view.cost,
        "lane_costs": view.lane_costs,
        "plans": [
            {"plan": plan_name(p.plan), "early": list(p.plan), "cost": p.cost}
            for p in view.priced.priced
        ],
        "inputs": [
            {
                "relation": entry.relation,
                "alias": entry.alias,
                "window": None if entry.window is None else entry.window.kind,
                "length": None if entry.window is None else entry.window.length or None,
                "early": view.plan[slot],
                "source": source_of(query, slot).id,
                "attributes": [attribute.text for attribute in entry.attributes],
                "shared_with": list(view.shared_with[slot]),
                "finer_set": _attributes(view.finer[slot] if view.finer else None),
                "finer_selections": _selections(view.finer[slot] if view.finer else None),
                "entries": view.held[slot] if view.held else None,
            }
            for slot, entry in enumerate(query.inputs)
        ],
    }
