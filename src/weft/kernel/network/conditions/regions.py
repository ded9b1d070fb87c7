"""The values of a subject as regions: between which constants a value lies.

All literals of one subject share one search: their bounds cut the subject's values into regions, a row
has one region, and a literal is a table of truth values over regions (NULL is a region of its own). So
a literal costs one look-up per row, however many constants it has.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.condition.values import NO_POINT, Bound, Values, point
from weft.algebra.predicates import Linear, Subject
from weft.algebra.types import FRACTIONAL, STRING
from weft.kernel.columns import codes
from weft.kernel.columns.column import Column
from weft.kernel.columns.operations import Array
from weft.kernel.network.conditions.subjects import can_raise, values_of
from weft.kernel.network.rows import Rows

_EPOCH = date(1970, 1, 1).toordinal()
_LOW, _HIGH = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True)
class Regions:
    """The regions of one subject: `bounds` in order, and how rows find theirs."""

    subject: Subject
    bounds: tuple[Any, ...]
    points: tuple[str, ...] | None
    """Of strings that are only compared for equality: the strings. Region k + 1 holds string k, region
    0 all others."""

    @property
    def null(self) -> int:
        """The region of NULL, and so the number of the others."""
        return len(self.bounds if self.points is None else self.points) + 1

    @property
    def late(self) -> bool:
        """Whether only rows that pass everything else may be tested."""
        return can_raise(self.subject)

    def of(self, rows: Rows, ansi: bool) -> Array:
        """The region of every row."""
        values = values_of(self.subject, rows, ansi=ansi)
        dtype = np.uint16 if self.null < 1 << 16 else np.int32
        if pa.types.is_null(values.type):
            return np.full(rows.count, self.null, dtype)
        regions = self._searched(values).astype(dtype)
        if values.valid is not None:
            regions[~values.valid] = self.null
        return regions

    def _searched(self, values: Column) -> Array:
        regions: Array
        if not isinstance(values.values, np.ndarray):
            return self._strings(values.values)
        if values.values.dtype == object:
            bounds = np.array([*self.bounds, None], object)[:-1]
            regions = np.searchsorted(bounds, values.values, side="right")
            return regions
        below = sum(bound < _LOW for bound in self.bounds)
        inside = np.array([bound for bound in self.bounds if _LOW <= bound <= _HIGH], np.int64)
        numbers = values.values.astype(np.int64, copy=False)
        if len(inside) == 1:
            regions = numbers >= inside[0]
        else:
            regions = np.searchsorted(inside, numbers, side="right")
        return regions + below if below else regions

    def _strings(self, values: pa.Array) -> Array:
        regions: Array
        if self.points is not None:
            places = pc.index_in(values, value_set=pa.array(self.points, values.type))
            regions = pc.add(pc.fill_null(places, -1), 1).to_numpy(zero_copy_only=False)
        else:
            encoded = values.dictionary_encode()
            ranks = [
                bisect_right(self.bounds, _bytes(text)) for text in encoded.dictionary.to_pylist()
            ]
            table = np.array([*ranks, self.null], np.int64)
            regions = table[pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)]
        if values.null_count:
            valid = values.is_valid().to_numpy(zero_copy_only=False)
            regions = np.where(valid, regions, self.null)
        return regions

    def table(self, values: Values) -> Array:
        """Which regions a set of values holds. Its bounds are among those of the regions."""
        table = np.zeros(self.null + 1, bool)
        table[self.null] = values.null
        if self.points is not None:
            listed = _listed(values)
            outside = listed is None
            if listed is None:
                listed = _listed(~values)
                assert listed is not None
            table[: self.null] = outside
            for text in listed:
                table[self.points.index(text) + 1] = not outside
            return table
        encode = _encoder(self.subject)
        for low, high in values.intervals:
            first = 0 if low is None else bisect_right(self.bounds, encode(low))
            beyond = self.null if high is None else bisect_right(self.bounds, encode(high))
            table[first:beyond] = True
        return table


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def _encoder(subject: Subject) -> Callable[[Bound], Any]:
    """Bounds as what `values_of` gives: a value is at or above the bound if its code is."""
    type_ = subject.type
    if not isinstance(subject, Linear) and type_ == STRING:
        return lambda bound: _bytes(str(bound.value)) + (b"\0" if bound.after else b"")
    if not isinstance(subject, Linear) and type_ in FRACTIONAL:

        def float_code(bound: Bound) -> int:
            number = np.nan if bound.value is None else float(bound.value)
            return int(codes.float_codes(pa.array([number]))[0]) + bound.after

        return float_code

    def integer(bound: Bound) -> int:
        value = bound.value
        if isinstance(value, str):
            value = date.fromisoformat(value).toordinal() - _EPOCH
        assert isinstance(value, int)
        return value + bound.after

    return integer


def _listed(values: Values) -> list[str] | None:
    """The strings of a set that is a list of strings."""
    points = [point(interval) for interval in values.intervals]
    return None if NO_POINT in points else points


def regions_of(subject: Subject, sets: Sequence[Values]) -> Regions:
    """The regions that tell sets of a subject's values apart."""
    if not isinstance(subject, Linear) and subject.type == STRING:
        lists = [_listed(values) for values in sets]
        rests = [_listed(~values) for values in sets]
        if all(some is not None or rest is not None for some, rest in zip(lists, rests)):
            pairs = zip(lists, rests)
            texts = {
                text for some, rest in pairs for text in (some if some is not None else rest) or []
            }
            return Regions(subject, (), tuple(sorted(texts)))
    encode = _encoder(subject)
    bounds = {
        encode(bound)
        for values in sets
        for interval in values.intervals
        for bound in interval
        if bound is not None
    }
    return Regions(subject, tuple(sorted(bounds)), None)
