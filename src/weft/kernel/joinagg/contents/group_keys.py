"""The groups of joined entries, as integers.

A key that is a column of one input has a code for each entry of the input, and a joined entry takes it from there: no value is
looked at again, however often it is joined. Keys that are computed of several inputs are encoded block by block. The code of a group
has one digit for each input, and one for the computed keys. Where digits have too many values for one integer, all keys are encoded block by
block. Groups that were made elsewhere come with the values of their keys, and are encoded by these.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from weft.algebra.predicates.slots import plain_name, slot_of
from weft.algebra.scalar import Ref, Scalar
from weft.kernel.columns import scalar as scalars
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.columns.column import to_arrow
from weft.kernel.columns.keys import KeyEncoder
from weft.kernel.columns.operations import Array
from weft.kernel.joinagg.contents.held import ColumnCodes, Contents
from weft.kernel.joinagg.join import Joined

_MOST = 1 << 40
"""Codes of columns together: they are sorted with an instant and a position in one integer."""


class GroupKeys:
    """The keys of a query over some contents; over none, for groups that were made elsewhere."""

    def __init__(self, keys: Sequence[Scalar], contents: Sequence[Contents], *, ansi: bool) -> None:
        self._keys, self._ansi = keys, ansi
        columns = {
            index: (slot_of(key.name), contents[slot_of(key.name)].codes(plain_name(key.name)))
            for index, key in enumerate(keys)
            if contents
            and isinstance(key, Ref)
            and contents[slot_of(key.name)].codes(plain_name(key.name)).type == arrow_type(key.type)
        }
        product = 1
        for _, of_column in columns.values():
            product *= of_column.count
        self._columns: dict[int, tuple[int, ColumnCodes]] = columns if product < _MOST else {}
        self._factor = product if self._columns else 1
        self._computed = [index for index in range(len(keys)) if index not in self._columns]
        types = [arrow_type(keys[index].type) for index in self._computed]
        self._encoder = KeyEncoder(types) if types else None
        self._of_entries = {slot: self._digits(slot) for slot, _ in self._columns.values()}

    def codes(self, joined: Joined) -> Array:
        """The group of every joined entry."""
        codes = np.zeros(joined.count, np.int64)
        if self._encoder is not None:
            codes = self._encoder.encode([self._value(index, joined) for index in self._computed])
            codes = codes * self._factor
        for slot, digits in self._of_entries.items():
            codes = codes + digits[joined.positions[slot]]
        return codes

    def digits(self, inputs: int) -> list[Array | None] | None:
        """What the columns of each input add to the code of a group (None: it has no key); None if a key is computed."""
        if self._computed:
            return None
        return [self._of_entries.get(slot) for slot in range(inputs)]

    def codes_of(self, keys: Sequence[pa.Array], count: int) -> Array:
        """The codes of groups that were made elsewhere, by their keys."""
        assert not self._columns, "these codes are of contents"
        return np.zeros(count, np.int64) if self._encoder is None else self._encoder.encode(keys)

    def _digits(self, slot: int) -> Array:
        """What the columns of one input add to the code of a group."""
        total: Array | None = None
        factor = 1
        for of_slot, column in self._columns.values():
            if of_slot == slot:
                part = column.codes * factor
                total = part if total is None else total + part
            factor *= column.count
        assert total is not None
        return total

    def _value(self, index: int, joined: Joined) -> pa.Array:
        def column(name: str) -> pa.Array:
            return to_arrow(joined.column(name))

        key = self._keys[index]
        values = scalars.evaluate(key, column, joined.count, ansi=self._ansi)
        wanted = arrow_type(key.type)
        values = values if values.type == wanted else values.cast(wanted)
        return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values

    def decode(self, index: int, codes: Array) -> pa.Array:
        """A key column of groups."""
        if index not in self._columns:
            assert self._encoder is not None
            return self._encoder.decode(self._computed.index(index), codes // self._factor)
        factor = 1
        for place, (_, column) in self._columns.items():
            if place == index:
                return column.decode(codes // factor % column.count)
            factor *= column.count
        raise AssertionError(f"key {index} is a column")
