"""EXPLAIN of a network as a drawing: sources on the left, then selections and joins, layer by layer.

Every node has a box while they are few. Of many nodes, the join nodes of a physical join share a box, and
so do the selections on the rows of one source or physical join. So the drawing grows with the
distinct joins and not with the queries. With `only`, it is the path of that query, node by node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log2

from weft.explain.canvas import Canvas, Shade, wrapped
from weft.explain.network.conditions import conjunction
from weft.explain.network.layout import Layout, layered
from weft.explain.network.view import NetworkNodeView, NetworkView
from weft.explain.wording import counted, figure, some

MOST_BOXES = 60
"""With more nodes than this, boxes are shared."""
_WIDTH = 260.0
_TITLE, _SMALL, _PADDING, _MOST_LINES = 13, 11, 16, 4
_HEADING, _BAR = 24, 24
_MOST_TOLD = 40
"""How many nodes a tooltip tells of."""
_SHADES = {
    "source": Shade("#1e293b", "#f8fafc"),
    "selection": Shade.of(2),
    "join": Shade.of(1),
    "semi-join": Shade.of(1),
    "anti-join": Shade.of(1),
    "union": Shade.of(3),
}
_SIGNS = {"join": "⋈", "semi-join": "⋉", "anti-join": "▷", "union": "∪"}


@dataclass(frozen=True)
class _Box:
    """Nodes that are drawn as one, and the text of their box."""

    nodes: tuple[NetworkNodeView, ...]

    @property
    def kind(self) -> str:
        return self.nodes[0].node.kind

    @cached_property
    def readers(self) -> int:
        return len({name for node in self.nodes for name in node.readers})

    @cached_property
    def lines(self) -> list[str]:
        """What stands below the title."""
        details = wrapped(_detail(self.nodes), _WIDTH - _PADDING, _SMALL)
        if len(details) > _MOST_LINES:
            details = [*details[: _MOST_LINES - 1], f"{details[_MOST_LINES - 1]} …"]
        return [line for line in (*details, _size(self.nodes), _fed(self.nodes)) if line]

    @property
    def size(self) -> tuple[float, float]:
        return _WIDTH, _PADDING + 1.5 * (_TITLE + _SMALL * (len(self.lines) + 1))

    def draw(self, canvas: Canvas, x: float, y: float) -> None:
        with canvas.box(x, y, *self.size, _SHADES[self.kind]) as shape:
            shape.title = "\n".join(_tooltip(node) for node in self.nodes[:_MOST_TOLD])
            shape.line(_title(self.nodes), size=_TITLE, bold=True)
            shape.paragraph(self.lines, size=_SMALL)
            served = f"serves {counted(self.readers, 'query', 'queries')}"
            shape.line(served, size=_SMALL, quiet=True)


@dataclass(frozen=True)
class NetworkDrawing:
    """Boxes with their places, to be drawn on a canvas."""

    view: NetworkView
    boxes: tuple[_Box, ...]
    layout: Layout
    only: str | None

    @property
    def width(self) -> int:
        return round(max(self.layout.width, 2 * _WIDTH))

    def draw(self, canvas: Canvas, left: float, top: float) -> float:
        """Draw it below `top`; the result is where it ends."""
        canvas.text(left, top + 10, self._heading, size=13)
        top += _HEADING
        for line in self.layout.lines:
            points = [(left + x, top + y) for x, y in line.points]
            end = self.boxes[int(line.end)]
            weight = 1.2 + 0.9 * log2(max(1, end.readers)) / 2
            canvas.spline(points, _SHADES[end.kind].line, weight)
        for number, box in enumerate(self.boxes):
            x, y = self.layout.corners[str(number)]
            box.draw(canvas, left + x, top + y)
        return self._bars(canvas, left, top + self.layout.height + 24)

    @property
    def _heading(self) -> str:
        if self.only is not None:
            return f"the way of {self.only} through the network of join queries"
        queries = counted(len(self.view.plan.queries), "query", "queries")
        nodes = counted(len(self.view.nodes), "node")
        folded = len(self.boxes) < len(self.view.nodes)
        boxes = f", drawn as {counted(len(self.boxes), 'box', 'boxes')}" if folded else ""
        return f"network of join queries: {queries}, {nodes}{boxes}"

    def _bars(self, canvas: Canvas, left: float, top: float) -> float:
        saved = self.view.savings
        rows = [
            ("joins, queries alone", saved.joins_alone, "#94a3b8"),
            ("join nodes", saved.joins, "#5eead4"),
            ("physical joins", saved.physical_joins, "#0d9488"),
        ]
        if not saved.joins_alone:
            rows = [
                ("selections, queries alone", saved.selections_alone, "#94a3b8"),
                ("selection nodes", saved.selections, "#0d9488"),
            ]
        most = max(value for _, value, _ in rows) or 1
        for number, (name, value, colour) in enumerate(rows):
            y = top + number * _BAR
            length = max(2.0, 400 * value / most)
            canvas.text(left, y + 13, name, size=12, colour="#475569")
            canvas.bar(left + 170, y, length, 16, colour)
            canvas.text(left + 180 + length, y + 13, figure(value), size=12)
        return top + len(rows) * _BAR


def network_drawing(view: NetworkView, only: str | None = None) -> NetworkDrawing | None:
    """The drawing of a network, or of one query's path; None if the query has none."""
    nodes: Sequence[NetworkNodeView] = view.nodes
    if only is not None:
        query = view.find(only)
        if query is None or query.id not in view.plan.feed_by_query:
            return None
        nodes = view.path(query)
    boxes = _folded(nodes) if len(nodes) > MOST_BOXES else [_Box((node,)) for node in nodes]
    box_of = {node.label: number for number, box in enumerate(boxes) for node in box.nodes}
    edges = {
        (str(box_of[parent]), str(box_of[node.label])): None
        for node in nodes
        for parent in node.parents
        if box_of[parent] != box_of[node.label]
    }
    sizes = {str(number): box.size for number, box in enumerate(boxes)}
    return NetworkDrawing(view, tuple(boxes), layered(sizes, list(edges)), only)


def _folded(nodes: Sequence[NetworkNodeView]) -> list[_Box]:
    """The join nodes of a physical join together, and the selections on the rows of each."""
    members: dict[tuple[str, str], list[NetworkNodeView]] = {}
    rows_of: dict[str, str] = {}
    for node in nodes:
        kind = node.node.kind
        if kind == "source":
            rows_of[node.label] = node.label
        elif kind == "selection":
            rows_of[node.label] = rows_of[node.parents[0]]
        elif kind != "join":
            rows_of[node.label] = kind
        else:
            rows_of[node.label] = f"physical join {node.physical}"
        members.setdefault((kind, rows_of[node.label]), []).append(node)
    return [_Box(tuple(together)) for together in members.values()]


def _title(nodes: Sequence[NetworkNodeView]) -> str:
    first = nodes[0]
    if len(nodes) > 1:
        return f"{first.label} … {nodes[-1].label} · {counted(len(nodes), first.node.kind)}"
    if first.node.kind in _SIGNS:
        return f"{first.label} · {f' {_SIGNS[first.node.kind]} '.join(first.parents)}"
    return f"{first.label} · {first.title}"


def _detail(nodes: Sequence[NetworkNodeView]) -> str:
    """The conditions that all of the nodes have, each once."""
    first = nodes[0]
    if first.node.kind == "source":
        lookups = [" ".join(line) for line in first.lookup_lines]
        return "; ".join([*lookups, counted(len(first.node.columns), "column")])
    if first.node.kind == "union":
        return "all rows of its parents"
    common = set(first.conditions).intersection(*(node.conditions for node in nodes))
    shown = [text for text in first.conditions if text in common]
    if len(nodes) > 1:
        return " AND ".join([*shown, "conditions of each"])
    return conjunction(shown) if shown else "every pair of rows"


def _size(nodes: Sequence[NetworkNodeView]) -> str:
    measured = [node.measured for node in nodes if node.measured is not None]
    if not measured:
        return ""
    rows = sum(node.rows or 0 for node in measured)
    kept = sum(node.history_rows for node in measured)
    return f"{counted(rows, 'row')}, history of {kept:,}" if kept else counted(rows, "row")


def _fed(nodes: Sequence[NetworkNodeView]) -> str:
    names = [name for node in nodes for name in node.feeds]
    return f"→ {some(names, 2)}" if names else ""


def _tooltip(node: NetworkNodeView) -> str:
    fed = f" → {', '.join(node.feeds)}" if node.feeds else ""
    return f"{node.label} {node.title}: {conjunction(node.conditions) or 'all rows'}{fed}"
