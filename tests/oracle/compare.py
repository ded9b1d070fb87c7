"""Compares emitted rows with the model's, as multisets.

Floats may differ by rounding, everything else must be equal in value and type. The model's
`OneOf` and `Between` accept any of their values.

>>> difference([(0, (1, 0.1 + 0.2))], [(0, (1, 0.3))]) is None
True
>>> print(difference([(0, ("a", 1))], [(0, ("a", 2))]))
missing: (0, ('a', 2))
unexpected: (0, ('a', 1))
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from decimal import Decimal

from .aggregates import Between, OneOf
from .values import Value

TOLERANCE = 1e-9

Row = tuple[Value, ...]
Emitted = tuple[int, Row]


def accepts(expected: Value, actual: Value) -> bool:
    """Whether a cell is what the model allows."""
    if isinstance(expected, OneOf):
        return any(accepts(value, actual) for value in expected.values)
    if isinstance(expected, Between):
        return type(actual) is int and expected.low <= actual <= expected.high
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, float):
        return _close(expected, actual)
    if isinstance(expected, Decimal):
        same_scale = expected.as_tuple().exponent == actual.as_tuple().exponent
        return bool(expected == actual) and same_scale
    return bool(expected == actual)


def _close(expected: float, actual: float) -> bool:
    if math.isnan(expected) or math.isnan(actual):
        return math.isnan(expected) and math.isnan(actual)
    return math.isclose(expected, actual, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def difference(
    actual: Sequence[Emitted], expected: Sequence[Emitted], *, batch_ids: bool = True
) -> str | None:
    """What is missing and what is unexpected, as text; None if the rows are the same.

    Without `batch_ids` only the rows count, not the batch that emitted them.
    """
    loose = _loose_columns([row for _, row in [*actual, *expected]])
    if not loose:
        return _uncounted(actual, expected, batch_ids)
    buckets: dict[tuple[Value, ...], tuple[list[Emitted], list[Emitted]]] = defaultdict(
        lambda: ([], [])
    )
    for side, emitted in enumerate((actual, expected)):
        for batch, row in emitted:
            buckets[_bucket(batch if batch_ids else -1, row, loose)][side].append((batch, row))
    missing: list[Emitted] = []
    unexpected: list[Emitted] = []
    for found, wanted in buckets.values():
        unmatched_found, unmatched_wanted = _unmatched(found, wanted)
        unexpected += unmatched_found
        missing += unmatched_wanted
    return _told(missing, unexpected)


def _uncounted(
    actual: Sequence[Emitted], expected: Sequence[Emitted], batch_ids: bool
) -> str | None:
    """The difference of rows that are compared by equality alone: by counting, since there may be many
    equal ones."""

    def exact(batch: int, row: Row) -> tuple[object, ...]:
        scales = (cell.as_tuple().exponent if isinstance(cell, Decimal) else 0 for cell in row)
        return (batch if batch_ids else -1, row, *map(type, row), *scales)

    examples = {exact(*item): item for item in [*actual, *expected]}
    found = Counter(exact(*item) for item in actual)
    wanted = Counter(exact(*item) for item in expected)
    missing = [examples[key] for key in (wanted - found).elements()]
    return _told(missing, [examples[key] for key in (found - wanted).elements()])


def _told(missing: Sequence[Emitted], unexpected: Sequence[Emitted]) -> str | None:
    if not missing and not unexpected:
        return None
    lines = [f"missing: {item}" for item in missing] + [
        f"unexpected: {item}" for item in unexpected
    ]
    return "\n".join(lines)


def assert_same(
    actual: Sequence[Emitted], expected: Sequence[Emitted], *, batch_ids: bool = True
) -> None:
    """Fails with the difference, if there is one."""
    found = difference(actual, expected, batch_ids=batch_ids)
    assert found is None, found


def _loose_columns(rows: Sequence[Row]) -> set[int]:
    """The columns in which some cell is compared by more than equality."""
    return {
        position
        for row in rows
        for position, cell in enumerate(row)
        if isinstance(cell, float | OneOf | Between)
    }


def _bucket(batch: int, row: Row, loose: set[int]) -> tuple[Value, ...]:
    return (batch, *(None if position in loose else row[position] for position in range(len(row))))


def _unmatched(
    found: Sequence[Emitted], wanted: Sequence[Emitted]
) -> tuple[list[Emitted], list[Emitted]]:
    """Pairs as many rows as possible (augmenting paths) and gives the rest of both sides."""
    fits = [
        [position for position, (_, row) in enumerate(found) if _row_accepts(expected, row)]
        for _, expected in wanted
    ]
    owner: dict[int, int] = {}

    def place(index: int, seen: set[int]) -> bool:
        for position in fits[index]:
            if position not in seen:
                seen.add(position)
                if position not in owner or place(owner[position], seen):
                    owner[position] = index
                    return True
        return False

    placed = [place(index, set()) for index in range(len(wanted))]
    rest = [item for position, item in enumerate(found) if position not in owner]
    return rest, [item for item, done in zip(wanted, placed, strict=True) if not done]


def _row_accepts(expected: Row, actual: Row) -> bool:
    return len(expected) == len(actual) and all(map(accepts, expected, actual))
