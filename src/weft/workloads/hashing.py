"""Random-looking columns that depend only on a seed, a purpose and the row's number.

``rand(seed)`` depends on how rows fall into partitions; a hash of the row's number does not.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

_FRACTION_BITS = 53


def uniform(number: Column, seed: int, purpose: str) -> Column:
    """A double in [0, 1), independent between purposes."""
    hashed = F.xxhash64(number, F.lit(seed), F.lit(purpose))
    mantissa = F.shiftrightunsigned(hashed, 64 - _FRACTION_BITS)
    return mantissa.cast("double") * F.lit(2.0**-_FRACTION_BITS)


def uniform_below(bound: Column | int, number: Column, seed: int, purpose: str) -> Column:
    """A BIGINT in [0, bound)."""
    limit = F.lit(bound) if isinstance(bound, int) else bound
    return F.floor(uniform(number, seed, purpose) * limit).cast("bigint")
