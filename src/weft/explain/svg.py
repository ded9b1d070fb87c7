"""EXPLAIN as a drawing: stream → trees of nodes → weave groups → queries, and bars for the cost.

A node that is computed from another stands below it, farther right, with a line from its parent.
Many queries of one weave group share a box that names the first few; every box has a tooltip
with the rest. Where a node has more weave groups than fit, the smallest share one box. The network
of join queries stands below (`network.drawing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log2

from weft.explain.axis import Axis
from weft.explain.canvas import Canvas, Shade, wrapped
from weft.explain.network.drawing import network_drawing
from weft.explain.outline import FallbackNote, GroupView, NodeView, Outline, StreamView
from weft.explain.wording import counted, duration, figure, some
from weft.optimizer.cost import Cost

_WIDTH, _MARGIN = 1240, 28
_STREAM = (_MARGIN, 190)
_NODES = (290, 280)
_ROW, _ROW_GAP, _NODE, _NODE_GAP = 46, 10, 96, 26
_TITLE_SIZE = 14
_INDENT = 28
"""How far a node stands to the right of the one that it is computed from."""
_MOST_GROUPS, _MOST_FALLBACKS = 10, 8


@dataclass(frozen=True)
class _Columns:
    """Where weave groups and queries begin: the deeper the trees of nodes, the farther right."""

    depth: int

    @property
    def _shift(self) -> int:
        return self.depth * _INDENT

    @property
    def width(self) -> int:
        return _WIDTH + self._shift

    @property
    def groups(self) -> tuple[int, int]:
        return 630 + self._shift, 240

    @property
    def queries(self) -> tuple[int, int]:
        return 922 + self._shift, _WIDTH - _MARGIN - 922


@dataclass(frozen=True)
class _Row:
    """A weave group, or the small ones of a node together."""

    groups: tuple[GroupView, ...]
    top: float

    @property
    def middle(self) -> float:
        return self.top + _ROW / 2

    @property
    def queries(self) -> int:
        return sum(len(group.queries) for group in self.groups)


@dataclass(frozen=True)
class _Branch:
    """A node in the order of drawing, children after their parent."""

    view: NodeView
    depth: int
    children: tuple[str, ...]
    served: frozenset[str]
    """The queries that read the node, or one that is computed from it."""


@dataclass(frozen=True)
class _Placed:
    """A node with its rows."""

    branch: _Branch
    title: tuple[str, ...]
    rows: tuple[_Row, ...]
    top: float
    height: float
    shade: Shade
    axis: Axis

    @property
    def view(self) -> NodeView:
        return self.branch.view

    @property
    def middle(self) -> float:
        return self.top + self.height / 2

    @property
    def left(self) -> float:
        return _NODES[0] + self.branch.depth * _INDENT

    @property
    def right(self) -> float:
        return self.left + _NODES[1]

    @property
    def box_height(self) -> float:
        return _box_height(self.title)

    def serves(self, only: str | None) -> bool:
        return only is None or only in self.branch.served


def svg(outline: Outline, only: str | None = None) -> str:
    """The drawing; with `only`, the rest of the plan is faded."""
    trees = [_branches(stream.nodes) for stream in outline.streams]
    columns = _Columns(max((branch.depth for tree in trees for branch in tree), default=0))
    network = network_drawing(outline.network, only) if outline.network is not None else None
    canvas = Canvas(max(columns.width, network.width + 2 * _MARGIN if network else 0))
    top = float(_MARGIN)
    for stream, tree in zip(outline.streams, trees, strict=True):
        top = _stream(canvas, columns, stream, tree, top, only) + 36
    if network is not None:
        top = network.draw(canvas, _MARGIN, top) + 36
    if outline.fallbacks:
        top = _fallbacks(canvas, columns, outline.fallbacks, top, only) + 20
    if outline.is_empty:
        canvas.text(_MARGIN, top + 14, "no query is registered", size=14)
        top += 40
    return canvas.document(top)


def _branches(nodes: Sequence[NodeView]) -> list[_Branch]:
    """The trees of nodes, each child after its parent and before its parent's next child."""
    children: dict[str | None, list[NodeView]] = {}
    for node in nodes:
        children.setdefault(node.parent, []).append(node)

    def below(node: NodeView, depth: int) -> list[_Branch]:
        inner = [
            branch for child in children.get(node.label, []) for branch in below(child, depth + 1)
        ]
        labels = tuple(child.label for child in children.get(node.label, []))
        served = frozenset(node.names).union(*(branch.served for branch in inner))
        return [_Branch(node, depth, labels, served), *inner]

    return [branch for root in children.get(None, []) for branch in below(root, 0)]


def _stream(
    canvas: Canvas,
    columns: _Columns,
    stream: StreamView,
    tree: Sequence[_Branch],
    top: float,
    only: str | None,
) -> float:
    for (left, _), heading in zip(
        (_STREAM, _NODES, columns.groups, columns.queries),
        ("stream", "nodes (level 1)", "weave groups (level 2)", "queries (level 3)"),
        strict=True,
    ):
        canvas.text(left, top + 10, heading, size=12, colour="#64748b")
    placed = list(_place(stream, tree, top + 26))
    bottom = max((node.top + node.height for node in placed), default=top + 26 + _NODE)
    first = placed[0].top if placed else top + 26
    centre = (first + bottom) / 2
    _tree_edges(canvas, placed, centre, only)
    for node in placed:
        _distinct_edges(canvas, columns, node, placed, only)
    for node in placed:
        _node(canvas, columns, node, only)
    _source(canvas, stream, centre)
    return _cost_bars(canvas, stream, bottom + 30)


def _tree_edges(canvas: Canvas, placed: Sequence[_Placed], centre: float, only: str | None) -> None:
    """From the stream to the nodes that read its rows, and from each node to those below it."""
    by_label = {node.view.label: node for node in placed}
    for node in placed:
        weight, faded = _thickness(len(node.branch.served)), not node.serves(only)
        if node.view.parent is None:
            source = (_STREAM[0] + _STREAM[1], centre)
            canvas.curve(source, (node.left, node.middle), node.shade.line, weight, faded=faded)
        else:
            parent = by_label[node.view.parent]
            start = (parent.left + _INDENT / 2, parent.middle + parent.box_height / 2)
            canvas.elbow(start, (node.left, node.middle), parent.shade.line, weight, faded=faded)


def _place(stream: StreamView, tree: Sequence[_Branch], top: float) -> Iterator[_Placed]:
    for number, branch in enumerate(tree):
        node = branch.view
        ranked = sorted(node.groups, key=lambda group: -len(group.queries))
        shown = node.groups
        rest: tuple[GroupView, ...] = ()
        if len(ranked) > _MOST_GROUPS:
            largest = {group.label for group in ranked[: _MOST_GROUPS - 1]}
            shown = tuple(group for group in node.groups if group.label in largest)
            rest = tuple(group for group in node.groups if group.label not in largest)
        together = [(group,) for group in shown] + ([rest] if rest else [])
        needed = len(together) * (_ROW + _ROW_GAP) - _ROW_GAP
        title = wrapped(_title(node), _NODES[1], _TITLE_SIZE, bold=True)
        height = max(_box_height(title), needed)
        first = top + (height - needed) / 2
        rows = tuple(
            _Row(groups, first + number * (_ROW + _ROW_GAP))
            for number, groups in enumerate(together)
        )
        yield _Placed(branch, tuple(title), rows, top, height, Shade.of(number), stream.axis)
        top += height + _NODE_GAP


def _title(node: NodeView) -> str:
    """The line to its parent says where a node comes from."""
    kind = ", an intermediate" if node.node.intermediate else ""
    return f"{node.label} · {node.heading}{kind}"


def _box_height(title: Sequence[str]) -> float:
    return _NODE + (len(title) - 1) * _TITLE_SIZE * 1.5


def _source(canvas: Canvas, stream: StreamView, centre: float) -> None:
    schema, columns = stream.plan.stream, stream.plan.columns
    height = 118
    shade = Shade("#1e293b", "#f8fafc")
    with canvas.box(_STREAM[0], centre - height / 2, _STREAM[1], height, shade) as box:
        box.title = f"{stream.join}: {', '.join(columns)}" if stream.join else ", ".join(columns)
        box.line(stream.join.removeprefix("the ") or stream.name, bold=True, size=16)
        box.line(counted(len(stream.plan.queries), "query", "queries"))
        box.line(f"reads {counted(len(columns), 'column')} once")
        behind = (
            "in order of event time" if schema.counts_rows else f"{duration(schema.delay)} behind"
        )
        box.line(f"{schema.time}, {behind}")
        version = stream.plan.version
        box.line(f"plan version {version}" if version else "not run yet", quiet=True)


def _node(canvas: Canvas, columns: _Columns, placed: _Placed, only: str | None) -> None:
    node = placed.view
    for row in placed.rows:
        _row(canvas, columns, placed, row, only)
    height = placed.box_height
    top, faded = placed.middle - height / 2, not placed.serves(only)
    with canvas.box(placed.left, top, _NODES[1], height, placed.shade, faded=faded) as box:
        box.title = "\n".join(
            [
                f"{node.label} {node.title}",
                *node.lookups,
                *(partial.label for partial in node.partials),
            ]
        )
        box.paragraph(placed.title, bold=True, size=_TITLE_SIZE)
        box.line(f"fragments {_fragments(node, placed.axis)}")
        bits = len(node.node.predicates)
        carried = counted(len(node.partials) + 1, "partial")
        box.line(f"{carried}, {counted(bits, 'predicate')}" if bits else carried)
        box.line(f"read by {_readers(placed.branch)}", quiet=True)


def _readers(branch: _Branch) -> str:
    queries = counted(len(branch.view.readers), "query", "queries")
    nodes = counted(len(branch.children), "node")
    if not branch.children:
        return queries
    return f"{nodes} and {queries}" if branch.view.readers else nodes


def _fragments(node: NodeView, axis: Axis) -> str:
    fragments = node.node.fragments
    rate = f"{figure(node.cost.fragments.per_second)}/{axis.per_short}"
    if fragments.pane:
        return f"of {axis.length(fragments.pane)}, {rate}"
    if len(fragments.classes) == 1:
        return f"{', '.join(axis.edges(*fragments.classes))}, {rate}"
    return f"at {len(fragments.classes)} edge classes, {rate}"


def _row(canvas: Canvas, columns: _Columns, placed: _Placed, row: _Row, only: str | None) -> None:
    queries = [query for group in row.groups for query in group.queries]
    names = [query.name for query in queries]
    related = only is None or only in names
    if related and only is not None:
        names.sort(key=lambda name: name != only)
        queries.sort(key=lambda query: query.name != only)
    weight = _thickness(row.queries)
    (groups, groups_width), (queries_left, queries_width) = columns.groups, columns.queries
    start = (placed.right, placed.middle)
    canvas.curve(start, (groups, row.middle), placed.shade.line, weight, faded=not related)
    ends = (groups + groups_width, row.middle), (queries_left, row.middle)
    canvas.curve(*ends, placed.shade.line, weight, faded=not related)
    white = Shade(placed.shade.line, "#ffffff")
    with canvas.box(groups, row.top, groups_width, _ROW, white, faded=not related) as box:
        head, below = _group_lines(row, placed.axis)
        box.title = below
        box.line(head, bold=True)
        box.line(below)
    with canvas.box(
        queries_left, row.top, queries_width, _ROW, placed.shade, faded=not related
    ) as box:
        box.title = "\n".join(f"{q.name}: {placed.axis.window(q.window)}" for q in queries)
        if len(queries) == 1:
            box.line(queries[0].name, bold=True)
            box.line(placed.axis.window(queries[0].window), quiet=True)
        else:
            windows = len({query.window for query in queries})
            box.line(f"{len(queries):,} queries, {counted(windows, 'window')}", bold=True)
            box.line(some(names, 2), quiet=True)


def _group_lines(row: _Row, axis: Axis) -> tuple[str, str]:
    if len(row.groups) > 1:
        return f"{len(row.groups)} more weave groups", "one predicate each"
    group = row.groups[0]
    head = f"{group.label} · {figure(group.edge_rate.per_second)} fragments/{axis.per_short}"
    return head, group.predicate or "all rows"


def _distinct_edges(
    canvas: Canvas, columns: _Columns, node: _Placed, placed: list[_Placed], only: str | None
) -> None:
    """From a node for count(distinct) to the weave groups of other nodes that read it."""
    if not node.view.distinct:
        return
    readers = set(node.view.names)
    for other in placed:
        for row in other.rows:
            names = {query.name for group in row.groups for query in group.queries}
            if readers & names:
                canvas.curve(
                    (node.right, node.middle),
                    (columns.groups[0], row.middle),
                    node.shade.line,
                    1.5,
                    dashed=True,
                    faded=only is not None and only not in names & readers,
                )


def _cost_bars(canvas: Canvas, stream: StreamView, top: float) -> float:
    cost = stream.cost
    bound = "" if cost.exact else ", upper bound"
    at = f" at {figure(cost.rate)} rows/s ({stream.rate_is}{bound})"
    plain = f", {figure(cost.saves_plain_spark)}× against plain Spark"
    if stream.rate_is == "exact":
        at, plain = f" ({bound.removeprefix(', ')})" if bound else "", ""
    heading = (
        f"predicted operations per {stream.axis.per}{at}: "
        f"sharing saves {figure(cost.saves)}× against the queries alone{plain}"
    )
    canvas.text(_MARGIN, top + 12, heading, size=13)
    left, width = 150, 760
    bars = _bars(cost)[1:] if stream.rate_is == "exact" else _bars(cost)
    most = max(value for _, value, _ in bars) or 1.0
    for number, (name, value, colour) in enumerate(bars):
        y = top + 26 + number * 26
        length = max(2.0, width * value / most)
        canvas.text(_MARGIN, y + 13, name, size=12, colour="#475569")
        canvas.bar(left, y, length, 17, colour)
        canvas.text(left + length + 10, y + 13, figure(value), size=12)
    return top + 26 + len(bars) * 26


def _bars(cost: Cost) -> tuple[tuple[str, float, str], ...]:
    return (
        ("plain Spark", cost.plain_spark, "#cbd5e1"),
        ("queries alone", cost.alone, "#94a3b8"),
        ("shared by weft", cost.shared, "#0d9488"),
    )


def _fallbacks(
    canvas: Canvas,
    columns: _Columns,
    notes: tuple[FallbackNote, ...],
    top: float,
    only: str | None,
) -> float:
    canvas.text(_MARGIN, top + 10, "not shared: plain streaming queries of their own", size=13)
    shown = notes[:_MOST_FALLBACKS]
    shade = Shade("#b45309", "#fffbeb")
    y = top + 22
    for note in shown:
        faded = only is not None and only != note.query
        with canvas.box(_MARGIN, y, columns.width - 2 * _MARGIN, 30, shade, faded=faded) as box:
            box.title = note.reason
            box.line(f"{note.query} on {note.stream}: {note.reason}")
        y += 38
    if len(notes) > len(shown):
        canvas.text(_MARGIN, y + 12, f"… and {len(notes) - len(shown):,} more", size=12)
        y += 22
    return y


def _thickness(queries: int) -> float:
    """Lines grow with the number of queries, slowly."""
    return 1.2 + 0.9 * log2(max(1, queries)) / 2
