"""Evaluates scalars on result columns: the columns of a table, and `window` of its two bounds."""

from __future__ import annotations

import pyarrow as pa

from weft.algebra.scalar import Scalar
from weft.kernel.columns import scalar as scalars
from weft.kernel.columns.arrow import single


def evaluate(scalar: Scalar, table: pa.Table, *, ansi: bool) -> pa.Array:
    """The values of a scalar over the rows of a table."""

    def column(name: str) -> pa.Array:
        if name == "window":
            bounds = [single(table.column("window_start")), single(table.column("window_end"))]
            return pa.StructArray.from_arrays(bounds, ["start", "end"])
        return single(table.column(name))

    return scalars.evaluate(scalar, column, table.num_rows, ansi=ansi)
