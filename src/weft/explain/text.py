"""EXPLAIN as text. Golden tests use the same printer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weft.algebra.numbered import source_name
from weft.algebra.plan import Fragments
from weft.algebra.query import Query
from weft.explain.axis import Axis
from weft.explain.network.lookups import lookup_lines
from weft.explain.network.text import network_lines, query_lines, summary_lines
from weft.explain.outline import (
    FallbackNote,
    GroupView,
    Measured,
    NodeView,
    Outline,
    RateIs,
    StreamView,
    aggregate_label,
    shown_sql,
)
from weft.explain.paragraph import KEPT, item, lane_seconds_item, wrapped
from weft.explain.statistics import statistics_lines
from weft.explain.wording import (
    counted,
    duration,
    figure,
    scalar_text,
    size_text,
    some,
)
from weft.optimizer.cost import FragmentRate, query_cost

_NAMES, _GROUPS, _PREDICATES, _COLUMNS, _FALLBACKS = 4, 12, 8, 30, 12
_LONG_AGO = -(1 << 61)


def text(outline: Outline) -> str:
    """The whole plan."""
    lines: list[str] = []
    for stream in outline.streams:
        lines += [*_stream(stream), ""]
    if outline.network is not None:
        lines += [*network_lines(outline.network), ""]
    lines += _fallbacks(outline.fallbacks)
    if outline.is_empty:
        lines.append("no query is registered")
    return "\n".join(lines).rstrip()


def summary(outline: Outline) -> str:
    """A line or two for every stream: how much is shared, and what it saves."""
    lines: list[str] = []
    for stream in outline.streams:
        nodes, groups = counted(len(stream.nodes), "node"), len(stream.groups)
        lines.append(f"{_head(stream)} share {nodes} and {counted(groups, 'weave group')}")
        for node in stream.nodes:
            reads = counted(len(node.readers), "query", "queries")
            fragments = _rate_text(node.cost.fragments, f"fragments per key and {stream.axis.per}")
            lines.append(f"  {node.label}  {node.title}: {reads}, {fragments}")
        lines += [*_costs(stream), _chosen(stream)]
    if outline.network is not None:
        lines += summary_lines(outline.network)
    lines += _fallbacks(outline.fallbacks)
    return "\n".join(lines)


def query_text(outline: Outline, name: str) -> str:
    """One query's part of the plan."""
    join = outline.find_join(name)
    if join is not None:
        return "\n".join(query_lines(*join))
    part = outline.find(name)
    if part is None:
        return f"query {name} is in no plan: it is quarantined or rejected (see its status)"
    if isinstance(part, FallbackNote):
        return (
            f"query {name} (fallback)\n"
            f"  runs by itself on stream {part.stream}, as a plain streaming query\n"
            f"  because {part.reason}"
        )
    return "\n".join(_query(*part))


def _head(stream: StreamView) -> str:
    queries = counted(len(stream.plan.queries), "query", "queries")
    join = f", {stream.join}" if stream.join else ""
    return f"stream {stream.name}{join}: {queries}"


def _stream(stream: StreamView) -> Iterator[str]:
    columns = stream.plan.columns
    read = f"one scan of {counted(len(columns), 'column')}: {some(columns, _COLUMNS)}"
    yield from wrapped(f"{_head(stream)}, {read}", "", 4)
    version = f", plan version {stream.plan.version}" if stream.plan.version else ""
    yield f"    {_time(stream)}{version}"
    for node in stream.nodes:
        yield ""
        yield from _node(node, stream.axis)
    yield ""
    yield from _costs(stream)
    yield _chosen(stream)
    yield from _lanes(stream)
    if stream.statistics is not None:
        yield ""
        yield f"statistics after {counted(stream.statistics.rows, 'row')}"
        for label, line in statistics_lines(stream, stream.statistics):
            yield from item(label, line)
    if stream.measured is not None:
        yield ""
        yield from _measured(stream, stream.measured)


def _time(stream: StreamView) -> str:
    schema = stream.plan.stream
    if schema.counts_rows:
        return f"rows of {source_name(schema.name)}, numbered in the order of event time"
    if stream.join:
        behind = (
            f"{duration(schema.delay)} behind the network's" if schema.delay else "the network's"
        )
        return f"event time {schema.time}, watermark {behind}"
    return f"event time {schema.time}, watermark {duration(schema.delay)} behind"


def _node(node: NodeView, axis: Axis) -> Iterator[str]:
    yield f"{node.label}  {node.title}"
    for number, lookup in enumerate(node.lookups):
        yield from item("tables" if number == 0 else "", lookup)
    yield from item("fragments", _fragments(node.node.fragments, node.cost.fragments, axis))
    predicates = [
        f"P{number}  {node.shown(predicate.sql)}"
        for number, predicate in enumerate(node.node.predicates, 1)
    ]
    if predicates:
        if not node.node.keeps_all_rows:
            predicates.append("rows that no predicate wants are dropped")
        shown = predicates[:_PREDICATES]
        if len(predicates) > _PREDICATES + 1:
            shown.append(f"… and {len(predicates) - _PREDICATES:,} more")
        else:
            shown = predicates
        for number, predicate in enumerate(shown):
            yield from item("predicates" if number == 0 else "", predicate)
        yield from item("index", _index(node))
    labels = ["count of rows", *(partial.label for partial in node.partials)]
    yield from item("partials", ", ".join(labels))
    if node.names:
        yield from item("read by", _names(node.names))
    for group in node.groups[:_GROUPS]:
        yield from _group(group, axis)
    left = node.groups[_GROUPS:]
    if left:
        queries = sum(len(group.queries) for group in left)
        more = counted(len(left), "more weave group")
        yield f"    … and {more} with {counted(queries, 'query', 'queries')}"


def _index(node: NodeView) -> str:
    """How rows are told apart by the predicates."""
    signature = node.node.signature
    parts = [
        f"a search for {node.shown(cut.attribute)} ({len(set(cut.classes)):,} classes)"
        for cut in signature.cuts
    ]
    if signature.bits:
        parts.append(counted(len(signature.bits), "bit"))
    return ", ".join(parts) or "the keys"


def _group(group: GroupView, axis: Axis) -> Iterator[str]:
    if group.predicate is None:
        reads = "all rows"
    elif group.number is not None:
        reads = group.number
    else:
        reads = group.predicate
    if group.fragments is not None:
        reads += f", coarse fragments {_fragments(group.fragments, group.edge_rate, axis)}"
    yield from wrapped(f"{reads}: {_names(group.names)}", f"    {group.label:<4}", 12)


def _names(names: Sequence[str]) -> str:
    return f"{counted(len(names), 'query', 'queries')}: {some(names, _NAMES)}"


def _fragments(fragments: Fragments, rate: FragmentRate, axis: Axis) -> str:
    per_second = _rate_text(rate, f"per key and {axis.per}")
    if fragments.pane:
        offset = f" + {axis.length(fragments.offset)}" if fragments.offset else ""
        return f"base panes of {axis.length(fragments.pane)}{offset}; {per_second}"
    ends = ", ".join(text.replace(" ", KEPT) for text in axis.edges(*fragments.classes))
    return f"end {ends}; {per_second}"


def _rate_text(rate: FragmentRate, unit: str) -> str:
    within = "" if rate.exact else f" (± {100 * rate.error:.1g} %)"
    return f"{figure(rate.per_second)}{within} {unit}"


def _costs(stream: StreamView) -> Iterator[str]:
    cost, rows_only = stream.cost, stream.rate_is == "exact"
    at = "" if rows_only else f" at {_rate(cost.rate, stream.rate_is)}"
    yield f"operations per {stream.axis.per}{at}"
    scans = counted(cost.queries, "scan")
    rows = [
        ("plain Spark", cost.plain_spark, f"{scans}, each row in {figure(cost.overlap)} windows"),
        ("queries alone", cost.alone, f"{scans}, fragments per query"),
        (
            "shared",
            cost.shared,
            f"one pass per node; level 1 {figure(cost.level1)}, level 2 {figure(cost.level2)}, "
            f"level 3 {figure(cost.level3)}",
        ),
    ]
    for name, value, how in rows[rows_only:]:
        bound = " (estimated)" if name == "shared" and not cost.exact else ""
        yield f"    {name:<14}{figure(value):>14}   {how}{bound}"
    if cost.queries > 1:
        plain = f", {figure(cost.saves_plain_spark)}× against plain Spark"
        yield (
            f"    sharing saves {figure(cost.saves)}× against the queries alone"
            f"{'' if rows_only else plain}"
        )


def _chosen(stream: StreamView) -> str:
    """Who chose the weave groups, and what they cost by weft's own model."""
    sharing, took = stream.plan.sharing, stream.seconds
    levels = (took.level1, took.level2, took.level3, took.results)
    parts = " + ".join(f"{1000 * level:.2g}" for level in levels)
    return (
        f"    groups by {sharing.optimizer} ({sharing.model}); {1000 * took.total:.2g} ms of work "
        f"per {stream.axis.per}: levels 1 to 3 and results {parts}"
    )


def _lanes(stream: StreamView) -> Iterator[str]:
    """What levels 2 and 3 will cost in each lane."""
    if stream.lanes:
        costs = [f"{1000 * cost:.2g}" for cost in stream.lanes]
        words = f"{counted(len(costs), 'lane')}, ms of work per {stream.axis.per} in each: "
        yield from wrapped(words + some(costs, _COLUMNS), "    ", 8)


def _rate(rate: float, rate_is: RateIs) -> str:
    return f"{figure(rate)} rows/s ({rate_is})"


def _measured(stream: StreamView, measured: Measured) -> Iterator[str]:
    yield f"measured in {counted(measured.batches, 'batch', 'batches')}"
    yield from item("rows", f"{measured.rows:,}" + _per_second(measured.rows_per_second))
    results_rate = measured.results / measured.seconds if measured.seconds else None
    yield from item("results", f"{measured.results:,}" + _per_second(results_rate))
    late = f"{measured.late_rows:,}; without event time {measured.null_times:,}"
    yield from item("late rows", late)
    yield from item("watermark", stream.axis.point(measured.watermark))
    state = f"{counted(measured.state_rows, 'fragment')}, {size_text(measured.state_bytes)}"
    yield from item("state", state)
    yield from _operations(stream, measured)
    yield from lane_seconds_item(measured.lane_seconds)
    for node in stream.nodes:
        held = measured.state_rows_by_node.get(node.node.id, 0)
        yield from item("", f"{node.label}  {counted(held, 'fragment')} open")
    for retired in stream.plan.retired:
        held = measured.state_rows_by_node.get(retired.node.id, 0)
        readers = counted(len(retired.queries), "query", "queries")
        yield from item("", f"retired, still read by {readers}: {counted(held, 'fragment')} open")


def _operations(stream: StreamView, measured: Measured) -> Iterator[str]:
    """Predicted beside counted, per second of event time."""
    if not measured.event_seconds or not measured.operations:
        return
    keys = figure(measured.keys or 1.0)
    per = "million rows" if stream.rate_is == "exact" else "second of event time"
    yield f"    operations per {per}, {keys} groups in a fragment"
    for level, value in stream.predicted_operations.items():
        counted_rate = measured.per_event_second(level)
        shown = "–" if counted_rate is None else figure(counted_rate)
        yield from item(f"level {level[-1]}", f"predicted {figure(value)}, counted {shown}")


def _per_second(rate: float | None) -> str:
    return "" if rate is None else f", {figure(rate)}/s while running"


def _fallbacks(notes: Sequence[FallbackNote]) -> Iterator[str]:
    if not notes:
        return
    alone = "1 query runs by itself" if len(notes) == 1 else f"{len(notes):,} queries run alone"
    yield f"{alone}, as plain Spark (fallback)"
    for note in notes[:_FALLBACKS]:
        yield from wrapped(f"on {note.stream}: {note.reason}", f"    {note.query}  ", 8)
    if len(notes) > _FALLBACKS:
        yield f"    … and {len(notes) - _FALLBACKS:,} more"


def _query(stream: StreamView, query: Query) -> Iterator[str]:
    schema, plan = stream.plan.stream, stream.plan
    group = stream.group_of(query)
    nodes = stream.nodes_of(query)
    version = f", plan version {plan.version}" if plan.version else ""
    yield f"query {query.name} (shared{version})"
    axis = stream.axis
    source = f"{schema.name}, {stream.join}" if stream.join else schema.name
    yield from item("stream", f"{source}, {_time(stream)}")
    windows = figure(query.window.overlap)
    yield from item("window", f"{axis.window(query.window)}: a row is in {windows} of them")
    for number, (words, table) in enumerate(lookup_lines(query.lookups)):
        yield from item("tables" if number == 0 else "", f"{words} {table}")
    keys = [shown_sql(key.sql, query.lookups) for key in query.keys]
    yield from item("keys", ", ".join(keys) or "none")
    if group is None:
        yield from item("predicate", "no row can satisfy it: it costs nothing, and has no results")
    elif group.predicate is not None:
        yield from item("predicate", f"{group.predicate} ({group.number} of {group.node})")
    aggregates = [aggregate_label(aggregate, query.lookups) for aggregate in query.aggregates]
    yield from item("aggregates", ", ".join(aggregates) or "none")
    if query.having is not None:
        names = {f"a{number}": label for number, label in enumerate(aggregates)}
        names |= {f"k{number}": key for number, key in enumerate(keys)}
        yield from item("having", scalar_text(query.having, names))
    yield from item("results", ", ".join(f"{c.name} {c.type}" for c in query.columns))
    since = plan.complete_from.get(query.id)
    if since is not None and since > _LONG_AGO:
        yield from item("complete", f"for windows that start at {axis.point(since)} or later")
    for node in nodes:
        others = [name for name in node.names if name != query.name]
        with_whom = f", with {_names(others)}" if others else ", with no other query"
        yield from item("reads", f"{node.label}  {node.title}{with_whom}")
        fragments = _fragments(node.node.fragments, node.cost.fragments, axis)
        yield from item("", f"fragments {fragments}")
        for partial in node.partials:
            if query.name in partial.readers:
                more = len(partial.readers) - 1
                shared = f"with {counted(more, 'other', 'others')}" if more else "alone"
                yield from item("", f"partial {partial.label}, {shared}")
    if group is not None:
        mates = [name for name in group.names if name != query.name]
        company = f"with {_names(mates)}" if mates else "alone"
        yield from item("weave group", f"{group.label}  {company}")
    yield from item("operations", _query_operations(stream, query))


def _query_operations(stream: StreamView, query: Query) -> str:
    rate = stream.cost.rate
    alone = f"{figure(query_cost(query, rate))} per {stream.axis.per} alone"
    if stream.rate_is != "exact":
        plain = figure(rate * query.window.overlap)
        alone = f"at {_rate(rate, stream.rate_is)}: {alone}, {plain} in plain Spark"
    queries = counted(len(stream.plan.queries), "query", "queries")
    return f"{alone}; all {queries} together {figure(stream.cost.shared)}"
