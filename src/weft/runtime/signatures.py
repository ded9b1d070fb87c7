"""Signatures in native Spark: the class of an attribute by a binary search, other conditions as bits.

A cut's search over b sorted bounds is a chain of log b projections. Each looks at one element of a
constant array, so that the generated code stays small and is compiled, whatever the number of
conditions (measured: 1000 constants cost a row as much as one). An expression over all conditions
would be too large for the JIT.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from weft.algebra.condition import NOTHING, Bound, Selection, Values, constant_sql
from weft.algebra.plan import Node
from weft.algebra.signature import WORD_BITS, Cut, membership
from weft.kernel.state import key_column, signature_column

_VALUE, _CODE = "weft_value", "weft_code"
MOST_INTERVALS = 32
"""Intervals in a filter; more are replaced by the one that covers them."""


def with_signature(rows: DataFrame, node: Node) -> DataFrame:
    """The rows with the signature columns of a node."""
    for place, cut in enumerate(node.signature.cuts):
        rows = with_class(rows, cut, cut.attribute, signature_column(place))
    words = word_sql(node.signature.bits)
    first = len(node.signature.cuts)
    for place, sql in enumerate(words):
        rows = rows.withColumn(signature_column(first + place), F.expr(sql))
    return rows


def inherited(place: int) -> str:
    """The name of a signature column that is made of a parent's."""
    return f"weft_{signature_column(place)}"


def with_signature_of(above: DataFrame, parent: Node, node: Node) -> DataFrame:
    """A parent's fragments with the signature columns of a node below it: its cuts are the
    parent's, or are searched in a key; its bits are some of the parent's."""
    cuts = {own.attribute: place for place, own in enumerate(parent.signature.cuts)}
    keys = {key.sql: key_column(place) for place, key in enumerate(parent.keys)}
    for place, cut in enumerate(node.signature.cuts):
        name = inherited(place)
        if cut.attribute in cuts:
            above = above.withColumn(name, F.col(signature_column(cuts[cut.attribute])))
        else:
            above = with_class(above, cut, keys[cut.attribute], name)
    known = {sql: place for place, sql in enumerate(parent.signature.bits)}
    conditions = []
    for sql in node.signature.bits:
        word, bit = divmod(known[sql], WORD_BITS)
        column = signature_column(len(parent.signature.cuts) + word)
        conditions.append(f"({column} & {1 << bit}L) != 0L")
    for place, sql in enumerate(word_sql(conditions)):
        above = above.withColumn(inherited(len(node.signature.cuts) + place), F.expr(sql))
    return above


def word_sql(bits: Sequence[str]) -> list[str]:
    """The columns of the bits: bit i of word w is condition w * WORD_BITS + i."""
    return [
        " + ".join(
            f"(CASE WHEN {condition} THEN {1 << bit}L ELSE 0L END)"
            for bit, condition in enumerate(bits[first : first + WORD_BITS])
        )
        for first in range(0, len(bits), WORD_BITS)
    ]


def with_class(rows: DataFrame, cut: Cut, attribute: str, name: str) -> DataFrame:
    """The rows with the class of an attribute's value under a cut."""
    first, steps, last = _search(cut, attribute)
    rows = rows.withColumns(first)
    for step in steps:
        rows = rows.withColumn(_CODE, step)
    return rows.withColumn(name, last).drop(_VALUE, _CODE)


@lru_cache(maxsize=256)
def _search(cut: Cut, attribute: str) -> tuple[dict[str, Column], list[Column], Column]:
    """The search as columns: the value, the steps to its code, and its class."""
    count = len(cut.bounds)
    bounds = [constant_sql(bound.value, cut.type) for bound in cut.bounds]
    array = F.expr(f"array({', '.join(bounds)})")
    value, code = F.col(_VALUE), F.col(_CODE)
    befores = [not bound.after for bound in cut.bounds]
    steps = []
    for stride in _strides(count):
        probe = F.get(array, code + F.lit(stride - 1))
        if all(befores):
            below = probe <= value
        elif not any(befores):
            below = probe < value
        else:
            flags = F.expr(f"array({', '.join(str(flag).lower() for flag in befores)})")
            below = (probe < value) | ((probe == value) & F.get(flags, code + F.lit(stride - 1)))
        fits = code + F.lit(stride) <= F.lit(count)
        steps.append(F.when(fits & below, code + F.lit(stride)).otherwise(code))
    classes = F.expr(f"array({', '.join(str(own) for own in cut.classes[1:])})")
    null = F.lit(cut.classes[0])
    last = F.when(value.isNull(), null).otherwise(F.get(classes, code)).cast("int")
    return {_VALUE: F.expr(attribute), _CODE: F.lit(0)}, steps, last


def _strides(count: int) -> Iterator[int]:
    """Powers of two from the largest that is at most the count.

    >>> list(_strides(5))
    [4, 2, 1]
    """
    stride = 1 << max(count.bit_length() - 1, 0)
    while stride and count:
        yield stride
        stride //= 2


def useful(node: Node) -> str | None:
    """A condition that every row satisfies that some predicate of a node wants; None if all rows
    are wanted. It leaves out most others, and costs little: per attribute the union of all values
    that are asked for."""
    if node.keeps_all_rows or not node.predicates:
        return None
    wanted: dict[str, tuple[str, Values]] = {}
    others: dict[str, None] = {}
    for predicate in node.predicates:
        found = membership(predicate, node.signature, node.keys)
        selections = predicate.condition.selections if predicate.condition else ()
        cuts = {cut.attribute for cut in node.signature.cuts} | {key.sql for key in node.keys}
        chosen = next((each for each in selections if each.attribute in cuts), None)
        if found is None or chosen is None or found.bit is not None:
            others[predicate.sql] = None
        else:
            values = wanted.get(chosen.attribute, ("", NOTHING))[1] | chosen.values
            wanted[chosen.attribute] = (chosen.type, values)
    parts = [
        Selection(attribute, type_, _covered(values)).sql
        for attribute, (type_, values) in wanted.items()
    ]
    parts += [f"coalesce({sql}, false)" for sql in others]
    return " OR ".join(parts)


def _covered(values: Values) -> Values:
    """At most so many intervals that are no single points: else the one that covers all."""
    ranges = [(low, high) for low, high in values.intervals if not _is_point(low, high)]
    if len(ranges) <= MOST_INTERVALS:
        return values
    return Values(((values.intervals[0][0], values.intervals[-1][1]),), values.null)


def _is_point(low: Bound | None, high: Bound | None) -> bool:
    if low is None or high is None:
        return False
    if isinstance(low.value, int) and isinstance(high.value, int):
        return high.value == low.value + 1
    return low.value == high.value
