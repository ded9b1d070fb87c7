"""Where the boxes and lines of a drawing go: Graphviz' `dot`, which lays out graphs in layers.

The library runs inside this process (pygraphviz brings Graphviz along), so nothing has to be
installed beside weft. Its coordinates are in points with y upwards; here x goes right and y down.
Time: about half a second for a thousand boxes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Point = tuple[float, float]

_POINTS = 72
_GAP_ACROSS, _GAP_ALONG = 0.2, 0.9
"""Inches between boxes of one layer, and between layers."""


@dataclass(frozen=True)
class Line:
    """A smooth line from one box to another: cubic Bézier curves through `points`."""

    start: str
    end: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Layout:
    """Boxes by their upper left corners, and the lines between them."""

    width: float
    height: float
    corners: Mapping[str, Point]
    lines: tuple[Line, ...]


def layered(sizes: Mapping[str, tuple[float, float]], edges: Sequence[tuple[str, str]]) -> Layout:
    """Boxes of the given sizes in layers from left to right, with few crossings of lines.

    >>> layout = layered({"a": (100, 50), "b": (100, 50)}, [("a", "b")])
    >>> layout.corners["a"][0] < layout.corners["b"][0]
    True
    """
    import pygraphviz

    graph = pygraphviz.AGraph(directed=True, strict=True)
    graph.graph_attr.update(rankdir="LR", nodesep=str(_GAP_ACROSS), ranksep=str(_GAP_ALONG))
    graph.node_attr.update(shape="box", fixedsize="true", label="")
    graph.edge_attr.update(arrowhead="none")
    for name, (width, height) in sizes.items():
        graph.add_node(name, width=f"{width / _POINTS:.4f}", height=f"{height / _POINTS:.4f}")
    for start, end in edges:
        graph.add_edge(start, end)
    graph.layout(prog="dot")
    _, _, width, height = (float(number) for number in graph.graph_attr["bb"].split(","))
    corners = {}
    for name, (box_width, box_height) in sizes.items():
        x, y = _point(graph.get_node(name).attr["pos"], height)
        corners[name] = (x - box_width / 2, y - box_height / 2)
    lines = tuple(
        Line(start, end, _curve(graph.get_edge(start, end).attr["pos"], height))
        for start, end in dict.fromkeys(edges)
    )
    return Layout(width, height, corners, lines)


def _curve(text: str, height: float) -> tuple[Point, ...]:
    """The control points of an edge; long ones are broken over several lines of text."""
    points = text.replace("\\\n", "").split()
    return tuple(_point(point, height) for point in points if point[0] not in "es")


def _point(text: str, height: float) -> Point:
    x, y = text.split(",")
    return float(x), height - float(y)
