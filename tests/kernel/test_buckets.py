"""The hash of keys is Spark's: lanes must find the fragments that Spark and the driver wrote."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.support.conditions import LITERALS, value_of
from tests.support.seeds import chance_for

from weft.algebra.types import INTEGRAL_LIMITS
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.fragments.buckets import buckets, can_hash, hashes

TYPES = [
    *("tinyint", "smallint", "int", "bigint", "boolean", "date", "float", "double", "string"),
]
TEXTS = ["", "a", "ab", "abc", "abcd", "abcde", "é", "日本語", "𝄞", "a\0b", "ÿ" * 3, "x" * 1000]
ROWS = 400


def values(type_: str, chance: random.Random) -> list[Any]:
    """Values at the limits, random ones, and NULL."""
    if type_ == "string":
        choices: list[Any] = list(TEXTS)
        choices += ["".join(chance.choices("aé𝄞~", k=chance.randrange(9))) for _ in range(40)]
    elif type_ in INTEGRAL_LIMITS:
        choices = [
            *INTEGRAL_LIMITS[type_],
            *(chance.randint(*INTEGRAL_LIMITS[type_]) for _ in "x" * 40),
        ]
    else:
        choices = [value_of(literal, type_) for literal in LITERALS[type_]]
    if type_ == "double":
        choices += [chance.uniform(-1e9, 1e9) for _ in range(40)]
    return [chance.choice([*choices, None]) for _ in range(ROWS)]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    chance = chance_for(__name__)
    arrays = {type_: pa.array(values(type_, chance), arrow_type(type_)) for type_ in TYPES}
    return pa.table(arrays)


def test_hashes_and_buckets_are_those_of_spark(
    spark: SparkSession, table: pa.Table, chance: random.Random
) -> None:
    keys = [[type_] for type_ in TYPES] + [TYPES, TYPES[::-1]]
    keys += [chance.sample(TYPES, chance.randrange(2, 5)) for _ in range(12)]
    assert can_hash([table.schema.field(name).type for name in TYPES])
    frame = spark.createDataFrame(table)
    listed = [", ".join(f"`{name}`" for name in names) for names in keys]
    columns = [f"hash({names}) AS h{number}" for number, names in enumerate(listed)]
    columns += [f"pmod(hash({names}), 64) AS b{number}" for number, names in enumerate(listed)]
    hashed = frame.coalesce(1).selectExpr(*columns).toArrow()
    for number, names in enumerate(keys):
        arrays = [table.column(name).combine_chunks() for name in names]
        assert hashes(arrays).tolist() == hashed.column(f"h{number}").to_pylist(), names
        assert buckets(arrays, ROWS, 64).tolist() == hashed.column(f"b{number}").to_pylist(), names


def test_parts_of_arrays_have_the_hashes_of_their_rows(table: pa.Table) -> None:
    arrays = [table.column(name).combine_chunks() for name in TYPES]
    whole = hashes(arrays)
    assert hashes([array.slice(7, 100) for array in arrays]).tolist() == whole[7:107].tolist()


def test_no_rows_and_no_keys() -> None:
    assert hashes([pa.array([], pa.string())]).tolist() == []
    assert hashes([pa.array([None, None], pa.string())]).tolist() == [42, 42]
    assert buckets([], 3, 64).tolist() == [0, 0, 0]
    assert buckets([pa.array([1])], 1, 64).dtype == np.int32


def test_keys_of_other_types_are_left_to_spark() -> None:
    assert not can_hash([pa.int64(), pa.decimal128(10, 2)])
    assert not can_hash([pa.binary()])


def test_every_nan_and_zero_is_hashed_as_one() -> None:
    """A division may give a NaN with its sign set, which Spark hashes as any other."""
    for bits, numbers in (
        (np.array([2047 << 52 | 1 << 51, 4095 << 52 | 1 << 51, 2047 << 52 | 1], np.uint64), "f8"),
        (np.array([255 << 23 | 1 << 22, 511 << 23 | 1 << 22, 255 << 23 | 1], np.uint32), "f4"),
    ):
        assert len(set(hashes([pa.array(bits.view(numbers))]).tolist())) == 1
    assert len(set(hashes([pa.array([0.0, -0.0])]).tolist())) == 1
