"""The classes of values under a cut, on Arrow arrays: what level 1 finds for rows, for keys.

Values and bounds are ranked together, as Spark orders them, and a value's code is the number of
bounds below it. Time: O(n log n) in values and bounds.
"""

from __future__ import annotations

import math
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from weft.algebra.condition import EXACT, Bound
from weft.algebra.signature import NULL_CLASS, Cut
from weft.algebra.types import BOOLEAN, FRACTIONAL, decimal_parameters
from weft.kernel.columns import codes
from weft.kernel.columns.operations import Array


def classes(values: pa.Array, cut: Cut) -> Array:
    """The class of each value."""
    numbered = np.array(cut.classes, np.int64)
    if not cut.bounds:
        only_class: Array = np.where(codes.validity(values), numbered[1], numbered[NULL_CLASS])
        return only_class
    constants = pa.array([_constant(bound, cut) for bound in cut.bounds], values.type)
    ranks = codes.ranks(pa.concat_arrays([values, constants]))
    value_ranks, bounds = ranks[: len(values)], ranks[len(values) :]
    places = 2 * bounds + np.array([bound.after for bound in cut.bounds])
    below = np.searchsorted(places, 2 * value_ranks + 1)
    return np.where(codes.validity(values), numbered[below + 1], numbered[NULL_CLASS])


def _constant(bound: Bound, cut: Cut) -> Any:
    """A bound's value as Arrow takes it."""
    value = bound.value
    parameters = decimal_parameters(cut.type)
    if parameters:
        return Decimal(str(value)).scaleb(-parameters[1], EXACT)
    if cut.type == BOOLEAN:
        return bool(value)
    if cut.type == "date":
        return date.fromisoformat(str(value))
    return math.nan if value is None and cut.type in FRACTIONAL else value
