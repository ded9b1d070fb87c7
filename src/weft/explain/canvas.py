"""A few shapes of SVG: boxes with lines of text, curves, bars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import escape

Point = tuple[float, float]

_HUES = (
    ("#2563eb", "#eff6ff"),
    ("#7c3aed", "#f5f3ff"),
    ("#0d9488", "#f0fdfa"),
    ("#db2777", "#fdf2f8"),
    ("#ca8a04", "#fefce8"),
    ("#4f46e5", "#eef2ff"),
    ("#16a34a", "#f0fdf4"),
    ("#dc2626", "#fef2f2"),
)
_FONT = "Inter, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"
_INK, _QUIET = "#0f172a", "#64748b"
_PADDING = 12
_FADED = ' opacity="0.22"'


@dataclass(frozen=True)
class Shade:
    """The colours of a box."""

    line: str
    fill: str

    @classmethod
    def of(cls, number: int) -> Shade:
        """One of a few colours that are told apart easily."""
        return cls(*_HUES[number % len(_HUES)])


@dataclass
class Box:
    """Lines of text in a frame; text that does not fit is cut."""

    width: float
    title: str = ""
    lines: list[tuple[str, int, bool, str]] = field(default_factory=list)

    def paragraph(self, lines: Sequence[str], *, size: int, bold: bool = False) -> None:
        """Lines that `wrapped` has made."""
        for line in lines:
            self.line(line, size=size, bold=bold)

    def line(self, text: str, *, size: int = 12, bold: bool = False, quiet: bool = False) -> None:
        fitting = fit(text, self.width - 2 * _PADDING, size, bold)
        self.lines.append((fitting, size, bold, _QUIET if quiet else _INK))


class Canvas:
    """Collects shapes; `document` gives the SVG."""

    def __init__(self, width: int) -> None:
        self._width = width
        self._shapes: list[str] = []

    def text(
        self, x: float, y: float, text: str, *, size: int, bold: bool = False, colour: str = _INK
    ) -> None:
        weight = ' font-weight="600"' if bold else ""
        self._shapes.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{colour}"{weight}>'
            f"{escape(text)}</text>"
        )

    def bar(self, x: float, y: float, width: float, height: float, colour: str) -> None:
        self._shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:.1f}" height="{height:g}" rx="3" '
            f'fill="{colour}"/>'
        )

    def curve(
        self,
        start: Point,
        end: Point,
        colour: str,
        width: float,
        *,
        dashed: bool = False,
        faded: bool = False,
    ) -> None:
        (x1, y1), (x2, y2) = start, end
        bend = (x2 - x1) / 2
        path = f"M{x1:g},{y1:g} C{x1 + bend:g},{y1:g} {x2 - bend:g},{y2:g} {x2:g},{y2:g}"
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        opacity = 0.1 if faded else 0.55
        self._shapes.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width:.1f}" '
            f'stroke-opacity="{opacity}"{dashes}/>'
        )

    def elbow(
        self, start: Point, end: Point, colour: str, width: float, *, faded: bool = False
    ) -> None:
        """A line straight down and then to the right, as in a tree of folders."""
        (x1, y1), (x2, y2) = start, end
        turn = min(8.0, x2 - x1, y2 - y1)
        path = f"M{x1:g},{y1:g} V{y2 - turn:g} Q{x1:g},{y2:g} {x1 + turn:g},{y2:g} H{x2:g}"
        opacity = 0.1 if faded else 0.55
        self._shapes.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="{width:.1f}" '
            f'stroke-opacity="{opacity}"/>'
        )

    def spline(self, points: Sequence[Point], colour: str, width: float) -> None:
        """A smooth line of cubic Bézier curves: a start, then three points for every curve."""
        start, *rest = (f"{x:.1f},{y:.1f}" for x, y in points)
        self._shapes.append(
            f'<path d="M{start} C{" ".join(rest)}" fill="none" stroke="{colour}" '
            f'stroke-width="{width:.1f}" stroke-opacity="0.55"/>'
        )

    @contextmanager
    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        shade: Shade,
        *,
        faded: bool = False,
    ) -> Iterator[Box]:
        """A frame; its lines are centred from top to bottom."""
        box = Box(width)
        yield box
        self._shapes.append(f"<g{_FADED if faded else ''}>")
        if box.title:
            self._shapes.append(f"<title>{escape(box.title)}</title>")
        self._shapes.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="8" '
            f'fill="{shade.fill}" stroke="{shade.line}" stroke-width="1.3"/>'
        )
        heights = [size * 1.5 for _, size, _, _ in box.lines]
        baseline = y + (height - sum(heights)) / 2
        for (text, size, bold, colour), used in zip(box.lines, heights, strict=True):
            baseline += used
            self.text(
                x + _PADDING, baseline - size * 0.42, text, size=size, bold=bold, colour=colour
            )
        self._shapes.append("</g>")

    def document(self, height: float) -> str:
        """The drawing."""
        size = f'width="{self._width}" height="{height:.0f}"'
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
            f'viewBox="0 0 {self._width} {height:.0f}" font-family="{_FONT}" role="img" '
            'aria-label="the shared plan">'
            f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(self._shapes)}</svg>'
        )


def wrapped(text: str, box_width: float, size: int, bold: bool = False) -> list[str]:
    """A text in lines that fit into a box, broken at spaces, and inside a word that is too long for a line.

    >>> wrapped("by auction, bidder, channel", 110, 14, bold=True)
    ['by auction,', 'bidder,', 'channel']
    >>> wrapped("by a_very_long_name", 100, 14)
    ['by', 'a_very_lo', 'ng_name']
    """
    width = box_width - 2 * _PADDING
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and fit(longer, width, size, bold) == longer:
            lines[-1] = longer
        else:
            lines += _pieces(word, width, size, bold)
    return lines or [""]


def _pieces(word: str, width: float, size: int, bold: bool) -> list[str]:
    """A word in pieces, each as long as a line."""
    pieces = [""]
    for letter in word:
        longer = pieces[-1] + letter
        if pieces[-1] and fit(longer, width, size, bold) != longer:
            pieces.append(letter)
        else:
            pieces[-1] = longer
    return pieces


def fit(text: str, width: float, size: int, bold: bool = False) -> str:
    """A text cut to a width, by the widths of letters in common fonts.

    >>> fit("a rather long predicate", 60, 12)
    'a rathe…'
    """
    scale = size * (1.06 if bold else 1.0)
    room = width
    for length, letter in enumerate(text):
        room -= _letter_width(letter) * scale
        if room < 0:
            kept = text[:length]
            while kept and sum(map(_letter_width, kept + "…")) * scale > width:
                kept = kept[:-1]
            return kept.rstrip() + "…"
    return text


def _letter_width(letter: str) -> float:
    if letter in "ijl.,:;'|!()[] tfI":
        return 0.34
    if letter in "mwMW@%—…":
        return 0.92
    return 0.68 if letter.isupper() else 0.58
