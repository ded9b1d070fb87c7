"""Partials that the keys of a fragment imply, so that no node has to compute or keep them.

All rows of a fragment have the same keys. The sketch of the distinct values of a key is therefore
that of one value: it is computed when it is needed, once for each value, and no row is ever sketched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.algebra.aggregate import distinct_sketch
from weft.algebra.partial import Partial
from weft.algebra.plan import Node
from weft.algebra.scalar import Expression
from weft.algebra.types import INTEGRAL

_TYPES = frozenset({*INTEGRAL, "string", "timestamp"})
_SIZE = "\x00"


@dataclass(frozen=True, slots=True)
class Implied:
    """The sketch of one value: that of a key, by its position among the keys."""

    key: int
    log_k: int


def implied(partial: Partial, keys: Sequence[Expression]) -> Implied | None:
    """How the keys imply a partial, None if they do not."""
    if partial.combine.name != "hll":
        return None
    for position, key in enumerate(keys):
        if key.type not in _TYPES:
            continue
        head, tail = distinct_sketch(key.sql, key.type, _SIZE).split(_SIZE)
        size = partial.lift.removeprefix(head).removesuffix(tail)
        if size.isdecimal() and partial.lift == head + size + tail:
            return Implied(position, int(size))
    return None


def carried(node: Node) -> tuple[Partial, ...]:
    """The partials that a node's fragments carry."""
    return tuple(p for p in node.partials if implied(p, node.keys) is None)
