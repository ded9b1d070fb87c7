"""EXPLAIN of a network as text: what sharing saved, then the nodes; of many nodes the most shared ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from weft.algebra.network.bounds import closings
from weft.algebra.network.query import JoinInput, JoinQuery
from weft.algebra.network.sets import NetworkQuery
from weft.algebra.predicates.slots import slot_of
from weft.algebra.query import StreamSchema
from weft.explain.network.conditions import conjunction
from weft.explain.network.lookups import of_query
from weft.explain.network.savings import Savings
from weft.explain.network.view import NetworkMeasured, NetworkNodeView, NetworkView
from weft.explain.paragraph import item, lane_seconds_item, wrapped
from weft.explain.wording import counted, duration, figure, instant, size_text, some
from weft.optimizer.network.estimate import ASSUMED_ROWS

MOST_NODES = 30
_NAMES, _COLUMNS, _CONDITIONS, _WARNINGS = 4, 20, 12, 6


def network_lines(view: NetworkView) -> Iterator[str]:
    """The whole network, or, of many nodes, those that serve the most queries."""
    yield from summary_lines(view)
    shown = _most_shared(view.nodes)
    for node in shown:
        yield ""
        yield from _node(node, view)
    if len(shown) < len(view.nodes):
        rest = counted(len(view.nodes) - len(shown), "more node")
        yield ""
        yield f"… and {rest}, each serving {_at_most(view.nodes, shown)}; JSON names all of them"
    if view.measured is not None:
        yield ""
        yield from _measured(view.measured)


def summary_lines(view: NetworkView) -> Iterator[str]:
    """How much is shared, in a few lines."""
    plan = view.plan
    sources = [node for node in view.nodes if node.node.kind == "source"]
    relations = list(dict.fromkeys(s.relation if s.lookups else s.label for s in sources))
    version = f", plan version {plan.version}" if plan.version else ""
    queries = counted(len(plan.queries), "query", "queries")
    yield from wrapped(f"network: {queries} over {some(relations, _COLUMNS)}{version}", "", 4)
    label = "sharing"
    for line in _savings(view.savings):
        yield from item(label, line)
        label = ""
    if len(view.nodes) > MOST_NODES:
        yield from item("levels", _levels(view.nodes))
    if view.lanes:
        rows = [figure(rows) for rows in view.lane_rows]
        words = f"{counted(len(rows), 'lane')}, rows of joins for {ASSUMED_ROWS:,.0f} rows of each relation in each: "
        yield from item("lanes", f"{words}{some(rows, _COLUMNS)} (estimated)")
    yield from _warnings(view.warnings)


def query_lines(view: NetworkView, query: NetworkQuery) -> Iterator[str]:
    """One query's path through the network."""
    plan = view.plan
    version = f", plan version {plan.version}" if plan.version else ""
    yield f"query {query.shown_name} (shared{version})"
    for number, branch in enumerate(query.branches, 1):
        if len(query.branches) > 1:
            yield from item("branch", f"{number} of {len(query.branches)}")
        distinct = query.distinct_in[number - 1] is not None
        yield from _branch(branch, distinct, plan.stream_by_name)
    if query.backfill:
        yield from item(
            "backfill", "also sees what history held when it was added; joins of its own"
        )
    if query.name in view.warnings:
        yield from item("warning", view.warnings[query.name])
    if query.id not in plan.feed_by_query:
        return
    feed = plan.feed_by_query[query.id]
    for node in view.path(query):
        yield ""
        yield from _node(node, view, query.shown_name, is_last=node.node.id == feed.node)


def _inputs(inputs: Sequence[JoinInput]) -> str:
    return ", ".join(
        entry.relation if entry.alias == entry.relation else f"{entry.relation} {entry.alias}"
        for entry in inputs
    )


def _branch(
    branch: JoinQuery, distinct: bool, streams: Mapping[str, StreamSchema]
) -> Iterator[str]:
    """What a branch reads and shows; most queries are one branch."""
    read = {entry.relation for entry in branch.every_input}
    tables = [name for name in branch.relations if name not in read]
    looked_up = f"; looks up {', '.join(tables)}" if tables else ""
    yield from item("reads", _inputs(branch.inputs) + looked_up)
    if branch.partner is not None:
        word = "with" if branch.partner.kind == "semi-join" else "without"
        yield from item("rows", f"{word} a match in {_inputs(branch.partner.inputs)}")
    closed = [
        f"{name} {'+' if micros >= 0 else '-'} {duration(abs(micros))}" if micros else name
        for name, micros in closings(branch, streams)
    ]
    if closed:
        yield from item("closed", f"when the watermark has reached {' and '.join(closed)}")
    names, shown = [entry.alias for entry in branch.inputs], of_query(branch)
    outputs = [
        f"{column.name} {column.type} = {shown.scalar(column.value, names)}"
        for column in branch.columns
    ]
    yield from item("results", some(outputs, _COLUMNS) + (", distinct" if distinct else ""))


def _savings(saved: Savings) -> Iterator[str]:
    if saved.joins_alone:
        yield (
            f"{counted(saved.joins_alone, 'join')} of the queries alone: here "
            f"{counted(saved.joins, 'join node')} in {counted(saved.physical_joins, 'physical join')}"
            f"{_factor(saved.joins_alone, saved.physical_joins)}"
        )
    if saved.selections_alone:
        yield (
            f"{counted(saved.selections_alone, 'selection')} alone: here "
            f"{counted(saved.selections, 'selection node')}"
            f"{_factor(saved.selections_alone, saved.selections)}"
        )
    if saved.lookups_alone:
        yield (
            f"{counted(saved.lookups_alone, 'lookup')} in tables alone: here {saved.lookups:,}"
            f"{_factor(saved.lookups_alone, saved.lookups)}"
        )
    if saved.partners_alone:
        yield (
            f"{counted(saved.partners_alone, 'semi-join or anti-join', 'semi-joins or anti-joins')} alone: "
            f"here {counted(saved.partners, 'node')}{_factor(saved.partners_alone, saved.partners)}"
        )
    if saved.unions_alone:
        yield (
            f"{counted(saved.unions_alone, 'union')} alone: here "
            f"{counted(saved.unions, 'union node')}{_factor(saved.unions_alone, saved.unions)}"
        )
    yield (
        f"{counted(saved.scans_alone, 'scan')} alone: here {saved.scans:,}"
        f"{_factor(saved.scans_alone, saved.scans)}"
    )


def _factor(alone: int, shared: int) -> str:
    return f" ({figure(alone / shared)}×)" if shared and alone > shared else ""


def _levels(nodes: Sequence[NetworkNodeView]) -> str:
    """How many nodes of which kind are on each level."""
    counts = Counter((node.node.level, node.node.kind) for node in nodes)
    parts = []
    for level in sorted({level for level, _ in counts}):
        kinds = [
            counted(counts[level, kind], kind)
            for kind in ("source", "join", "semi-join", "anti-join", "union", "selection")
            if counts[level, kind]
        ]
        parts.append(f"level {level}: {', '.join(kinds)}")
    return "; ".join(parts)


def _most_shared(nodes: Sequence[NetworkNodeView]) -> list[NetworkNodeView]:
    """The nodes that serve the most queries, in the network's order."""
    ranked = sorted(nodes, key=lambda node: -len(node.readers))
    most = {node.label for node in ranked[:MOST_NODES]}
    return [node for node in nodes if node.label in most]


def _at_most(nodes: Sequence[NetworkNodeView], shown: Sequence[NetworkNodeView]) -> str:
    labels = {node.label for node in shown}
    most = max(len(node.readers) for node in nodes if node.label not in labels)
    return f"{counted(most, 'query', 'queries')} or fewer" if most > 1 else "1 query"


def _node(
    node: NetworkNodeView, view: NetworkView, query: str | None = None, is_last: bool = False
) -> Iterator[str]:
    """A node; for one query, with whom it is shared instead of who reads it."""
    yield f"{node.label}  {node.title}{_whereabouts(node, view, query)}"
    for words, text in node.lookup_lines:
        yield from item(words, text)
    if node.conditions:
        word = "where" if node.node.kind in ("source", "selection") else "on"
        yield from item(word, conjunction(_some_conditions(node.conditions)))
    elif node.node.kind == "join":
        yield from item("on", "nothing: every pair of rows")
    columns = [_column(name, node) for name in node.node.columns]
    if columns:
        yield from item("columns", some(columns, _COLUMNS))
    size = _size(node, view)
    if size:
        yield from item("size", size)
    if query is None:
        yield from item("read by", _names(node.readers))
        if node.feeds and node.node.kind != "source" and node.feeds != node.readers:
            yield from item("feeds", _names(node.feeds))
    else:
        others = [name for name in node.readers if name != query]
        yield from item("shared", f"with {_names(others)}" if others else "with no other query")
        if is_last:
            yield from item("feeds", query)


def _whereabouts(node: NetworkNodeView, view: NetworkView, query: str | None) -> str:
    """What follows a node's title."""
    parts = []
    if query is not None and any(node.slots):
        parts.append(f"as {', '.join(node.slots).replace('|', ' and ')}")
    if node.is_stream:
        schema = view.plan.stream_by_name[node.node.relations[0]]
        parts.append(f"event time {schema.time}, watermark {duration(schema.delay)} behind")
    if node.node.kind != "source":
        parts.append(f"level {node.node.level}, sequence {node.node.sequence}")
    if node.physical is not None:
        parts.append(f"physical join {node.physical}")
    return "".join(f", {part}" for part in parts)


def _some_conditions(texts: Sequence[str]) -> list[str]:
    if len(texts) <= _CONDITIONS + 1:
        return list(texts)
    return [*texts[:_CONDITIONS], f"… {len(texts) - _CONDITIONS:,} more"]


def _column(name: str, node: NetworkNodeView) -> str:
    prefix = node.slots[slot_of(name)] if len(node.slots) > 1 else ""
    column = node.shown.column(name)
    return f"{prefix}.{column}" if prefix else column


def _size(node: NetworkNodeView, view: NetworkView) -> str:
    """What was measured, or, before that, what is to be expected."""
    measured = node.measured
    if measured is None:
        if node.node.kind == "source" or view.measured is not None:
            return ""
        rows = figure(view.estimated_rows(node))
        return f"about {rows} rows for {ASSUMED_ROWS:,.0f} rows of each relation (estimated)"
    parts = [] if measured.rows is None else [f"{counted(measured.rows, 'row')} so far"]
    if measured.history_rows or measured.history_bytes:
        size = size_text(measured.history_bytes)
        parts.append(f"history of {counted(measured.history_rows, 'row')}, {size}")
    return "; ".join(parts)


def _names(names: Sequence[str]) -> str:
    return (
        f"{counted(len(names), 'query', 'queries')}: {some(names, _NAMES)}" if names else "nobody"
    )


def _warnings(warnings: Mapping[str, str]) -> Iterator[str]:
    for name in list(warnings)[:_WARNINGS]:
        yield from item("warning", f"query {name}: {warnings[name]}")
    if len(warnings) > _WARNINGS:
        yield from item("", f"… and of {len(warnings) - _WARNINGS:,} more queries")


def _measured(measured: NetworkMeasured) -> Iterator[str]:
    yield f"measured in {counted(measured.steps, 'step')}"
    per_second = ""
    if measured.seconds:
        per_second = f", {figure(measured.rows / measured.seconds)}/s while running"
    yield from item("rows", f"{measured.rows:,}{per_second}")
    yield from item("results", f"{measured.results:,}")
    yield from item("late rows", f"{measured.late_rows:,}")
    yield from item("watermark", instant(measured.watermark))
    size = size_text(measured.history_bytes)
    places = {"driver": "in memory, on the driver", "lanes": "in files; joins run in tasks"}
    place = places[measured.where]
    yield from item("history", f"{counted(measured.history_rows, 'row')}, {size} {place}")
    yield from lane_seconds_item(measured.lane_seconds)
