"""Partial aggregates: what a fragment carries, and how two fragments become one.

A partial is one column of a fragment. Its `combine` names the operation, and the operation's
class says what algorithms may be built on it: prefixes need an exact inverse
(`Invertible`), everything else takes any associative and commutative operation.

A partial's name is the digest of what it lifts, so that equal partials of different queries
and of different plan versions are the same column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final
from typing import Literal as OneOf

from weft.algebra.codec import digest
from weft.algebra.types import SqlType

InvertibleName = OneOf["add", "add_wide", "add_decimal"]
AssociativeName = OneOf["add_float", "min", "max", "moments", "hll", "kll_bigint", "kll_double"]


QUANTILES: Final = frozenset({"kll_bigint", "kll_double"})
"""Sketches that take their full size at once, some half a megabyte each at the usual accuracy."""
SKETCHES: Final = QUANTILES | {"hll"}


@dataclass(frozen=True, slots=True)
class Invertible:
    """An operation with an exact inverse: sums of integers, wide integers and decimals."""

    name: InvertibleName


@dataclass(frozen=True, slots=True)
class Associative:
    """An operation without one: float sums, extremes, moments, sketches."""

    name: AssociativeName


Combine = Invertible | Associative


@dataclass(frozen=True, slots=True)
class Partial:
    """A column of a fragment.

    `lift` is the Spark aggregate expression that makes it from rows; `type` is the column's
    type in state files (timestamps travel as bigint microseconds); extremes are structs
    that compare field by field, the last field being the value asked for.
    """

    lift: str
    type: SqlType
    combine: Combine

    @property
    def name(self) -> str:
        return _name(self.lift, self.type)

    @property
    def arrays(self) -> tuple[SqlType, ...]:
        """The types of the arrays that hold it in memory (`kernel/columns/partial_columns`)."""
        return _ARRAYS.get(self.combine.name, (self.type,))

    @property
    def packed_type(self) -> SqlType:
        """The type of a column that holds these arrays as they are: a struct.

        >>> COUNT_STAR.packed_type
        'struct<v0:bigint>'
        """
        return f"struct<{','.join(f'v{i}:{type_}' for i, type_ in enumerate(self.arrays))}>"


_ARRAYS: Final[dict[str, tuple[SqlType, ...]]] = {
    "add": ("bigint",),
    "add_wide": ("bigint",) * 2,
    "add_decimal": ("bigint",) * 5,
    "add_float": ("double",),
    "moments": ("double",) * 3,
}


@cache
def _name(lift: str, type_: SqlType) -> str:
    return "p_" + digest((lift, type_))


COUNT_STAR = Partial("count(1)", "bigint", Invertible("add"))
