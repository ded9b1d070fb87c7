"""Codes order as the values do, and come back as the values."""

from __future__ import annotations

import itertools
import math
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from weft.kernel.columns.codes import Extremes, encode, missing_code, to_arrow

CASES: list[tuple[pa.DataType, list[Any]]] = [
    (pa.bool_(), [False, True]),
    (pa.int16(), [-(2**15), -1, 0, 7, 2**15 - 1]),
    (pa.int64(), [-(2**63), -1, 0, 5, 2**63 - 1]),
    (pa.float32(), [-math.inf, -1.5, 0.0, 2.25, math.inf, math.nan]),
    (pa.float64(), [-math.inf, -1e300, -0.5, 0.0, 5e-324, 1.0, math.inf, math.nan]),
    (pa.string(), ["", "A", "a", "ab", "é", "\uffff", "𝄞"]),
    (pa.binary(), [b"", b"\x00", b"a", b"\xff"]),
    (pa.date32(), [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)]),
    (pa.decimal128(38, 2), [Decimal("-9e35"), Decimal("-0.01"), Decimal("0"), Decimal("9e35")]),
]


@pytest.mark.parametrize("kept", [False, True], ids=["ranked", "kept as codes"])
@pytest.mark.parametrize("operation", ["min", "max"])
@pytest.mark.parametrize(("type_", "ordered"), CASES, ids=lambda value: str(value)[:20])
def test_order_and_way_back(
    type_: pa.DataType, ordered: list[Any], operation: str, kept: bool
) -> None:
    shuffled = [*ordered[::2], None, *ordered[1::2], *ordered]
    values = pa.array(shuffled, type_)
    missing = missing_code(operation)
    encoded = encode(Extremes.of(values, missing) if kept else values, missing)
    by_value = {str(value): [] for value in ordered}  # type: ignore[var-annotated]
    for value, code in zip(shuffled, encoded.codes.tolist(), strict=True):
        if value is None:
            assert code == missing
        else:
            by_value[str(value)].append(code)
    flat = list(by_value.values())
    for lower, higher in itertools.pairwise(flat):
        assert max(lower) < min(higher)
    back = to_arrow(encoded.decode(encoded.codes, encoded.codes == missing))
    assert back.type == values.type
    assert str(back.to_pylist()) == str(values.to_pylist())


def test_structs_order_field_by_field_with_nulls_first() -> None:
    type_ = pa.struct([("at", pa.int64()), ("value", pa.string())])
    ordered = [{"at": 1, "value": None}, {"at": 1, "value": "b"}, {"at": 2, "value": "a"}]
    encoded = encode(pa.array([ordered[2], None, ordered[0], ordered[1]], type_), -1)
    assert encoded.codes[1] == -1
    assert encoded.codes[2] < encoded.codes[3] < encoded.codes[0]
    assert encoded.decode(encoded.codes[[2]], np.array([False])).to_pylist() == [ordered[0]]


def test_a_column_with_the_highest_integer_is_ranked_also_when_others_are_not() -> None:
    missing = missing_code("min")
    plain = Extremes.of(pa.array([3, None], pa.int64()), missing)
    assert isinstance(plain, Extremes)
    highest = Extremes.of(pa.array([2**63 - 1], pa.int64()), missing)
    assert isinstance(highest, pa.Array)
    joined = Extremes.concatenated([plain, highest])
    assert to_arrow(joined).to_pylist() == [3, None, 2**63 - 1]
    assert to_arrow(Extremes.concatenated([plain, plain])).to_pylist() == [3, None, 3, None]
    assert to_arrow(Extremes.absent(2, missing, pa.int64())).to_pylist() == [None, None]
