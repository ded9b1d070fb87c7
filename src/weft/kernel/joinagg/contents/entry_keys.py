"""The join keys of an input's entries, once for all that is joined with them.

Keys are hashed to integers (`network/joins/keys`). Here every distinct integer has a number, and an entry that stands for it. An input
is *pure* if entries with the same integer have the same values in all columns that the key reads; then what holds for one of them holds
for all. Hashes of 40 bits rarely collide, so nearly all are.

Time: O(n log n) for n entries. What is found is kept with the contents, so queries that share an input share it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from weft.algebra.predicates.slots import column_name, plain_name
from weft.kernel.columns.column import Column
from weft.kernel.columns.operations import Array
from weft.kernel.joinagg.contents.held import Contents
from weft.kernel.network.joins.keys import KeySide, key_values


@dataclass(frozen=True)
class EntryKeys:
    """Distinct key values in ascending order, an entry with each of them, and of every entry the number of its value; -1: it has
    none, since a part is NULL."""

    values: Array
    examples: Array
    codes: Array
    pure: bool

    @property
    def entries(self) -> Array:
        """The entries that have a key."""
        return np.flatnonzero(self.codes >= 0)


class _Alone:
    """The rows of one input, whatever slot a column's name says."""

    def __init__(self, contents: Contents) -> None:
        self._contents = contents

    @property
    def count(self) -> int:
        return len(self._contents)

    def column(self, name: str) -> Column:
        return self._contents.rows.column(column_name(0, plain_name(name)))


def keys_of(contents: Contents, side: KeySide, *, ansi: bool) -> EntryKeys:
    """The keys of all entries. The side reads columns of this input alone."""
    return contents.found.of(("keys", side, ansi), lambda: _keys(contents, side, ansi))


def _keys(contents: Contents, side: KeySide, ansi: bool) -> EntryKeys:
    names = sorted({plain_name(name) for name in side.names})
    if len(names) == 1:
        return _of_column(contents, names[0], side, ansi)
    values, valid = key_values(side, _Alone(contents), ansi=ansi)
    codes = np.full(len(values), -1, np.int64)
    entries = np.arange(len(values)) if valid is None else np.flatnonzero(valid)
    distinct, first, numbers = np.unique(values[entries], return_index=True, return_inverse=True)
    codes[entries] = numbers.reshape(-1)
    pure = True
    for name in names:
        of_column = contents.codes(name).codes[entries]
        pure = pure and bool((of_column == of_column[first][codes[entries]]).all())
    return EntryKeys(distinct, entries[first], codes, pure)


def _of_column(contents: Contents, name: str, side: KeySide, ansi: bool) -> EntryKeys:
    """The keys of one column, computed for each value and not for each entry."""
    coded = contents.codes(name)
    present, values = coded.distinct()
    of_values, valid = key_values(side, _Values(values), ansi=ansi)
    if valid is not None:
        present, of_values = present[valid], of_values[valid]
    distinct, numbers = np.unique(of_values, return_inverse=True)
    by_code = np.full(coded.count, -1, np.int64)
    by_code[present] = numbers.reshape(-1)
    codes = by_code[coded.codes]
    examples = np.zeros(len(distinct), np.int64)
    entries = np.flatnonzero(codes >= 0)
    examples[codes[entries]] = entries
    return EntryKeys(distinct, examples, codes, len(distinct) == len(present))


class _Values:
    """The values of one column as rows."""

    def __init__(self, values: Column) -> None:
        self._values = values

    @property
    def count(self) -> int:
        return len(self._values)

    def column(self, name: str) -> Column:
        return self._values
