"""COUNT(DISTINCT …) of joined entries: the values that each group has at each instant, once.

The arguments are attributes of their inputs, by which an early aggregation groups, so joined entries have every value that joined rows have. How many
rows an entry stands for does not matter. Values are kept as small integers beside the group and the instant. Groups that were made elsewhere
come with lists of their values.

Time: O(n log n) for n joined entries of a block; memory holds each value of a group and instant once, and once more for each block that is waiting.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from weft.kernel.columns.keys import KeyEncoder
from weft.kernel.columns.operations import Array


class DistinctValues:
    """Of each place, which is a group at an instant, the different values that it has."""

    def __init__(self, types: Sequence[pa.DataType]) -> None:
        self._encoder = KeyEncoder(types)
        self._places = np.zeros(0, np.int64)
        self._values = np.zeros(0, np.int64)
        self._waiting: list[tuple[Array, Array]] = []

    def add(self, places: Array, arguments: Sequence[pa.Array]) -> None:
        """Take in values at places; none of them is NULL."""
        if len(places):
            self._waiting.append(_once(places, self._encoder.encode(arguments)))

    def _together(self) -> tuple[Array, Array]:
        """Places in ascending order, and their values."""
        if self._waiting:
            places, values = zip((self._places, self._values), *self._waiting, strict=True)
            self._places, self._values = _once(np.concatenate(places), np.concatenate(values))
            self._waiting = []
        return self._places, self._values

    def counts(self, wanted: Array) -> Array:
        """How many values places have."""
        places, _ = self._together()
        counts: Array = np.searchsorted(places, wanted, side="right")
        return counts - np.searchsorted(places, wanted, side="left")

    def lists(self, wanted: Array) -> pa.Array:
        """The values of places, as lists of structs; no place is wanted twice."""
        places, values = self._together()
        first = np.searchsorted(places, wanted, side="left")
        counts = self.counts(wanted)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        inside = np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], counts)
        columns = [
            self._encoder.decode(index, values[inside]) for index in range(len(self._encoder.types))
        ]
        names = [f"v{index}" for index in range(len(columns))]
        structs = pa.StructArray.from_arrays(columns, names)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs)

    def add_lists(self, places: Array, lists: pa.Array) -> None:
        """Take in what `lists` gave elsewhere."""
        lengths = np.diff(lists.offsets.to_numpy())
        structs = lists.flatten()
        arguments = [structs.field(index) for index in range(structs.type.num_fields)]
        self.add(np.repeat(places, lengths), arguments)


def _once(places: Array, values: Array) -> tuple[Array, Array]:
    """Each pair once, sorted by place and value."""
    order = np.lexsort((values, places))
    places, values = places[order], values[order]
    new = np.ones(len(order), bool)
    new[1:] = (places[1:] != places[:-1]) | (values[1:] != values[:-1])
    return places[new], values[new]
