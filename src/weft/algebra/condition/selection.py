"""A selection: an attribute and the values of it that pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.algebra.condition.constants import constant_sql
from weft.algebra.condition.values import ALL, NO_POINT, NOT_NULL, Bound, Interval, Values, point
from weft.algebra.types import SqlType


@dataclass(frozen=True, slots=True)
class Selection:
    """An attribute (Spark SQL) and the values of it that pass."""

    attribute: str
    type: SqlType
    values: Values

    @property
    def bounds(self) -> list[Bound]:
        return [bound for pair in self.values.intervals for bound in pair if bound is not None]

    @property
    def sql(self) -> str:
        """The selection as a condition that is true on exactly its values."""
        if self.values == ALL:
            return "true"
        parts = [f"({self.attribute} IS NULL)"] if self.values.null else []
        if self.values.intervals == NOT_NULL.intervals:
            return f"({self.attribute} IS NOT NULL)"
        points = [point(interval) for interval in self.values.intervals]
        constants = [constant_sql(value, self.type) for value in points if value is not NO_POINT]
        if len(constants) == 1:
            parts.append(f"({self.attribute} = {constants[0]})")
        elif constants:
            parts.append(f"({self.attribute} IN ({', '.join(constants)}))")
        parts += [
            self._between(interval)
            for interval, value in zip(self.values.intervals, points, strict=True)
            if value is NO_POINT
        ]
        if not parts:
            return "false"
        return parts[0] if len(parts) == 1 else f"({' OR '.join(parts)})"

    def _between(self, interval: Interval) -> str:
        low, high = interval
        parts = []
        if low is not None:
            sign = ">" if low.after else ">="
            parts.append(f"{self.attribute} {sign} {constant_sql(low.value, self.type)}")
        if high is not None:
            sign = "<=" if high.after else "<"
            parts.append(f"{self.attribute} {sign} {constant_sql(high.value, self.type)}")
        return f"({' AND '.join(parts)})"


def sorted_bounds(selections: Sequence[Selection]) -> tuple[Bound, ...]:
    """The distinct bounds of selections on one attribute, in order."""
    return tuple(sorted({bound for selection in selections for bound in selection.bounds}))
