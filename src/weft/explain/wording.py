"""How EXPLAIN writes durations, figures, names and SQL."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from weft.algebra.scalar import Call, Literal, Opaque, Ref, Scalar, to_sql
from weft.algebra.window import EdgeClass, Window

_UNITS = (
    (86_400_000_000, "d"),
    (3_600_000_000, "h"),
    (60_000_000, "min"),
    (1_000_000, "s"),
    (1_000, "ms"),
)
_QUOTED = re.compile(
    r"'(?:\\.|[^'\\])*'|`(?P<name>[A-Za-z_]\w*(?:#\d+)?(?:\.[A-Za-z_]\w*)?)`|`[^`]*`|(?<![\w.])(?P<number>-?\d+)[LSY]\b"
)
_NAME = re.compile(r"'(?:\\.|[^'\\])*'|\b(?P<name>[ak]\d+|window_start|window_end)\b")


def duration(micros: int) -> str:
    """A length of time in the largest unit that divides it.

    >>> [duration(t) for t in (3_600_000_000, 5_400_000_000, 65_000_000, 250_000, 7)]
    ['1 h', '90 min', '65 s', '250 ms', '7 µs']
    """
    for size, unit in _UNITS:
        if micros % size == 0 and micros:
            return f"{micros // size} {unit}"
    return f"{micros} µs" if micros else "0 s"


def instant(micros: int) -> str:
    """A time in UTC; microseconds since 1970 where the calendar ends.

    >>> instant(1_704_067_200_500_000)
    '2024-01-01 00:00:00.5 UTC'
    """
    try:
        moment = datetime.fromtimestamp(micros // 1_000_000, UTC)
    except (OverflowError, OSError, ValueError):
        return f"{micros} µs"
    fraction = f".{micros % 1_000_000:06d}".rstrip("0") if micros % 1_000_000 else ""
    return f"{moment:%Y-%m-%d %H:%M:%S}{fraction} UTC"


def window_text(window: Window, length: Callable[[int], str] = duration) -> str:
    """A window's range, slide and start.

    >>> window_text(Window(3_600_000_000, 60_000_000)), window_text(Window(5_000_000, 5_000_000))
    ('1 h every 1 min', 'every 5 s')
    """
    text = f"every {length(window.slide)}"
    if window.range != window.slide:
        text = f"{length(window.range)} {text}"
    return text + _offset(window.start, length)


def edge_text(slide: int, residues: Sequence[int], length: Callable[[int], str] = duration) -> str:
    """The times of the edge classes of one slide.

    >>> edge_text(10_000_000, [3_000_000])
    'every 10 s + 3 s'
    >>> edge_text(5_000_000, [0, 1_000_000, 1_500_000])
    'every 5 s (+ 0 s, + 1 s, + 1500 ms)'
    """
    text = f"every {length(slide)}"
    if len(residues) == 1:
        return text + _offset(residues[0], length)
    return f"{text} ({', '.join(f'+ {length(residue)}' for residue in residues)})"


def edges_text(classes: Iterable[EdgeClass], length: Callable[[int], str] = duration) -> list[str]:
    """The times of edge classes, those of one slide together."""
    residues: dict[int, list[int]] = {}
    for edge in classes:
        residues.setdefault(edge.slide, []).append(edge.residue)
    return [edge_text(slide, offsets, length) for slide, offsets in residues.items()]


def _offset(micros: int, length: Callable[[int], str]) -> str:
    if not micros:
        return ""
    return f" {'+' if micros > 0 else '-'} {length(abs(micros))}"


def figure(value: float) -> str:
    """A number for people: three significant digits, thousands set apart.

    >>> [figure(x) for x in (0.0, 0.0123, 1.5, 12.34, 1234.5, 1234567.0)]
    ['0', '0.0123', '1.5', '12.3', '1,230', '1,230,000']
    """
    if not value:
        return "0"
    rounded = float(f"{value:.3g}")
    if abs(rounded) >= 100:
        return f"{rounded:,.0f}"
    return f"{rounded:.3g}" if abs(rounded) >= 1e-4 else f"{rounded:.2e}"


def counted(number: int, word: str, plural: str | None = None) -> str:
    """A number and its noun.

    >>> counted(1, "query", "queries"), counted(2000, "query", "queries"), counted(2, "row")
    ('1 query', '2,000 queries', '2 rows')
    """
    return f"{number:,} {word if number == 1 else plural or word + 's'}"


def size_text(size: int) -> str:
    """A number of bytes.

    >>> [size_text(n) for n in (512, 2048, 5_300_000)]
    ['512 B', '2.0 KiB', '5.1 MiB']
    """
    value = float(size)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{size} B" if unit == "B" else f"{value:.1f} {unit}"


def some(items: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first few items, and how many more there are.

    >>> some(["a", "b", "c", "d"], 2)
    'a, b … and 2 more'
    """
    if len(items) <= most + 1:
        return separator.join(items)
    return f"{separator.join(items[:most])} … and {len(items) - most:,} more"


def readable(sql: str) -> str:
    """Canonical SQL without the quotes and the outer brackets that only a machine needs.

    >>> readable("((`price` >= 10) AND (`a b` = '`x`'))")
    "(price >= 10) AND (`a b` = '`x`')"

    The columns of derived streams have the names of their relations in front.

    >>> readable("sum(`calls#2.minutes`)")
    'sum(calls#2.minutes)'
    """
    text = _QUOTED.sub(lambda match: match["name"] or match["number"] or match[0], sql)
    while text.startswith("(") and _closing(text) == len(text) - 1:
        text = text[1:-1]
    return text


def _closing(text: str) -> int:
    """Where the bracket that opens a text is closed; -1 if it is not."""
    depth = 0
    position = 0
    for match in re.finditer(r"'(?:\\.|[^'\\])*'|`[^`]*`|[()]", text):
        position = match.start()
        depth += {"(": 1, ")": -1}.get(match[0], 0)
        if depth == 0:
            return position
    return -1


def scalar_text(scalar: Scalar, names: Mapping[str, str]) -> str:
    """An expression over results, with the names of its keys and aggregates put in.

    >>> scalar_text(Call(">", (Ref("a0", "bigint"), Literal(5, "bigint")), "boolean"),
    ...             {"a0": "count(*)"})
    'count(*) > 5'
    """
    return readable(to_sql(_named(scalar, names)))


def _named(scalar: Scalar, names: Mapping[str, str]) -> Scalar:
    if isinstance(scalar, Ref):
        return replace(scalar, name=names.get(scalar.name, scalar.name))
    if isinstance(scalar, Literal):
        plain = isinstance(scalar.value, (int, float)) and not isinstance(scalar.value, bool)
        return Ref(str(scalar.value), scalar.type) if plain else scalar
    if isinstance(scalar, Call):
        arguments = tuple(_named(argument, names) for argument in scalar.arguments)
        return replace(scalar, arguments=arguments)
    return Opaque(_NAME.sub(lambda match: _put(match, names), scalar.sql), (), scalar.type)


def _put(match: re.Match[str], names: Mapping[str, str]) -> str:
    name = match["name"]
    return names.get(name, name) if name else match[0]
