"""What changed between neighbouring instants: new and changed groups, and those that are gone.

Results of all instants, and the last result before them, are sorted by group and instant. A group changed where
its row differs from the one before, or where the instant before has none; it is gone where the next instant has none. Values are
equal as SQL groups them: NULL equals NULL, NaN equals NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from weft.kernel.columns.arrow import single
from weft.kernel.columns.keys import KeyEncoder
from weft.kernel.columns.operations import Array
from weft.kernel.columns.sorting import ordered
from weft.kernel.joinagg.evaluation import AT

REMOVED = "removed"


def changed(
    before: pa.Table | None,
    results: pa.Table,
    instants: Array,
    keys: Sequence[str],
    carried: Sequence[str] = (),
) -> tuple[pa.Table, pa.Table]:
    """The rows of `results` that are new or changed, and rows of removed groups with NULL values,
    all with the column `removed`; and the result at the last instant. `before` is the result at the instant before the
    first one; its `at` does not matter. `instants` are all that were evaluated, in ascending order. Columns that are `carried` are not compared."""
    earlier = results.slice(0, 0) if before is None else before.select(results.column_names)
    rows = pa.concat_tables([earlier.cast(results.schema), results]).combine_chunks()
    places = np.concatenate(
        [
            np.full(earlier.num_rows, -1),
            np.searchsorted(instants, results.column(AT).cast(pa.int64()).to_numpy()),
        ]
    )
    groups = _codes([single(rows.column(name)) for name in keys], rows.num_rows)
    values = [name for name in results.column_names if name != AT and name not in keys]
    compared = [name for name in values if name not in carried]
    width = len(instants) + 2
    order, sorted_groups = ordered(groups * width + places + 1)
    contents = _codes([single(rows.column(name)) for name in compared], rows.num_rows)[order]
    same = np.zeros(len(order), bool)
    same[1:] = (np.diff(sorted_groups) == 1) & (np.diff(groups[order]) == 0)
    same[1:] &= contents[1:] == contents[:-1]
    shown = order[~same & (places[order] >= 0)]
    followed = np.zeros(len(order), bool)
    followed[:-1] = (np.diff(sorted_groups) == 1) & (np.diff(groups[order]) == 0)
    gone = order[~followed & (places[order] < len(instants) - 1)]
    last = rows.take(pa.array(order[places[order] == len(instants) - 1]))
    return _marked(rows, shown, gone, places, instants, values), last


def _codes(columns: Sequence[pa.Array], count: int) -> Array:
    if not columns:
        return np.zeros(count, np.int64)
    codes: Array = KeyEncoder([column.type for column in columns]).encode(columns)
    return codes


def _marked(
    rows: pa.Table, shown: Array, gone: Array, places: Array, instants: Array, values: Sequence[str]
) -> pa.Table:
    kept = rows.take(pa.array(shown))
    kept = kept.append_column(REMOVED, pa.array(np.zeros(len(shown), bool)))
    removed = rows.take(pa.array(gone))
    at = pa.array(instants[places[gone] + 1]).cast(rows.schema.field(AT).type)
    removed = removed.set_column(rows.column_names.index(AT), AT, at)
    for name in values:
        index = rows.column_names.index(name)
        removed = removed.set_column(index, name, pa.nulls(len(gone), rows.schema.field(name).type))
    removed = removed.append_column(REMOVED, pa.array(np.ones(len(gone), bool)))
    return pa.concat_tables([kept, removed])
