"""Groups of the nodes of an aggregate tree as numbers, exactly, for keys of any type.

Every attribute is encoded by itself, by Arrow's dictionaries (first sight gets the next number;
NULL is a value; all NaN are one, and so are -0.0 and 0.0). The groups of a node are then numbered
among the groups of its parent, since a group of the parent lies in one group of the child: only
nodes below the stream are numbered over rows. Time: linear in rows for each of those, in groups for
the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from weft.errors import TreeError

Integers = NDArray[np.int64]
_MOST_COMBINED = 2**62


@dataclass(frozen=True)
class Attribute:
    """A column as numbers, and how many there are."""

    codes: Integers
    values: int
    dictionary: Any = None

    def decode(self, codes: Integers) -> pa.Array:
        """The values of some codes."""
        numbers = pa.array(codes, pa.int64())
        return numbers if self.dictionary is None else self.dictionary.take(numbers)


@dataclass(frozen=True)
class NodeCodes:
    """The group of every row, or of every group of the parent; and a row of each group."""

    groups: Integers
    rows: Integers

    def __len__(self) -> int:
        return len(self.rows)


def encode(table: pa.Table, attributes: Iterable[str]) -> dict[str, Attribute]:
    """Columns of a table as attributes."""
    encoded_attributes = {}
    for name in attributes:
        if name not in table.column_names:
            columns = ", ".join(table.column_names)
            raise TreeError("UNKNOWN_COLUMN", name=name, stream="the table", known=columns)
        column = table.column(name).combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = (
                pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
            )
        if pa.types.is_nested(column.type):
            detail = f"'{name}' is a {column.type}: nested values cannot be grouped by"
            raise TreeError("BAD_TREE", detail=detail)
        encoded = _comparable(column).dictionary_encode(null_encoding="encode")
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        dictionary = encoded.dictionary
        if dictionary.type != column.type:
            dictionary = dictionary.view(column.type)
        encoded_attributes[name] = Attribute(codes, max(len(dictionary), 1), dictionary)
    return encoded_attributes


def node_codes(
    node: Iterable[str], attributes: Mapping[str, Attribute], rows: Integers | None, count: int
) -> NodeCodes:
    """The groups of a node among `rows`, or among all `count` rows of the stream."""
    places = np.arange(count, dtype=np.int64) if rows is None else rows
    combined, values = np.zeros(len(places), np.int64), 1
    for name in sorted(node):
        attribute = attributes[name]
        if values * attribute.values > _MOST_COMBINED:
            combined, values = _dense(combined)
        codes = attribute.codes if rows is None else attribute.codes[rows]
        combined = combined * attribute.values + codes
        values *= attribute.values
    groups, number = _dense(combined)
    first = np.empty(number, np.int64)
    first[groups[::-1]] = places[::-1]
    return NodeCodes(groups, first)


def _dense(codes: Integers) -> tuple[Integers, int]:
    """The same numbers without gaps, in the order of first sight."""
    encoded = pa.array(codes).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)


def _comparable(column: pa.Array) -> pa.Array:
    """Floats as bits, with one NaN and one zero; all else as it is."""
    if not pa.types.is_floating(column.type):
        return column
    values = np.array(column.fill_null(0).to_numpy(zero_copy_only=False)) + 0.0
    values[np.isnan(values)] = np.nan
    mask = column.is_null().to_numpy(zero_copy_only=False)
    bits = values.view(np.dtype(f"i{values.itemsize}"))
    return pa.array(bits, mask=mask)
