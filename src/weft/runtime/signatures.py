"""Signatures in native Spark: the class of an attribute by a binary search, other conditions as bits.

A cut's search over b sorted bounds is a chain of log b projections. Each looks at one element of a
constant array, so that the generated code stays small and is compiled, whatever the number of
conditions (measured: 1000 constants cost a row as much as one). An expression over all conditions
would be too large for the JIT. All is Spark SQL text, nested selects over a relation: one analysis
for all steps.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from weft.algebra.condition import Bound, Selection, Values, constant, union
from weft.algebra.plan import Node
from weft.algebra.signature import WORD_BITS, Cut
from weft.algebra.types import SqlType
from weft.kernel.state import key_column, signature_column

MOST_INTERVALS = 32
"""Intervals in a filter; more are replaced by the one that covers them."""

Relation = str
"""What may stand after FROM."""


def made(place: int) -> str:
    """The name of a signature column under way: no column of a stream has it."""
    return f"weft_{signature_column(place)}"


def with_signature(rows: Relation, node: Node) -> Relation:
    """The rows with the signature columns of a node."""
    for place, cut in enumerate(node.signature.cuts):
        rows = with_class(rows, cut, cut.attribute, made(place))
    return _with_words(rows, len(node.signature.cuts), node.signature.bits)


def with_signature_of(above: Relation, parent: Node, node: Node) -> Relation:
    """A parent's fragments with the signature columns of a node below it: its cuts are the
    parent's, or are searched in a key; its bits are some of the parent's."""
    cuts = {own.attribute: place for place, own in enumerate(parent.signature.cuts)}
    keys = {key.sql: key_column(place) for place, key in enumerate(parent.keys)}
    for place, cut in enumerate(node.signature.cuts):
        if cut.attribute in cuts:
            above = selecting(above, {made(place): signature_column(cuts[cut.attribute])})
        else:
            above = with_class(above, cut, keys[cut.attribute], made(place))
    known = {sql: place for place, sql in enumerate(parent.signature.bits)}
    conditions = []
    for sql in node.signature.bits:
        word, bit = divmod(known[sql], WORD_BITS)
        column = signature_column(len(parent.signature.cuts) + word)
        conditions.append(f"({column} & {1 << bit}L) != 0L")
    return _with_words(above, len(node.signature.cuts), conditions)


def selecting(rows: Relation, columns: dict[str, str]) -> Relation:
    """The rows with more columns.

    >>> selecting("t", {"b": "a + 1"})
    '(SELECT *, a + 1 AS b FROM t)'
    """
    if not columns:
        return rows
    listed = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
    return f"(SELECT *, {listed} FROM {rows})"


def _with_words(rows: Relation, first: int, bits: Sequence[str]) -> Relation:
    words = word_sql(bits)
    return selecting(rows, {made(first + place): sql for place, sql in enumerate(words)})


def word_sql(bits: Sequence[str]) -> list[str]:
    """The columns of the bits: bit i of word w is condition w * WORD_BITS + i."""
    return [
        " + ".join(
            f"(CASE WHEN {condition} THEN {1 << bit}L ELSE 0L END)"
            for bit, condition in enumerate(bits[first : first + WORD_BITS])
        )
        for first in range(0, len(bits), WORD_BITS)
    ]


def with_class(rows: Relation, cut: Cut, attribute: str, name: str) -> Relation:
    """The rows with the class of an attribute's value under a cut."""
    for step in _search(cut, attribute, name):
        rows = selecting(rows, step)
    return rows


@lru_cache(maxsize=256)
def _search(cut: Cut, attribute: str, name: str) -> list[dict[str, str]]:
    """The columns of each step of a search: the value, codes that come ever closer, the class."""
    value, count = f"{name}_value", len(cut.bounds)
    bounds = _array([constant(bound.value, cut.type) for bound in cut.bounds], cut.type)
    befores = [not bound.after for bound in cut.bounds]
    steps = [{value: attribute, f"{name}_0": "0"}]
    code = f"{name}_0"
    for number, stride in enumerate(_strides(count), 1):
        at = f"{code} + {stride - 1}"
        below = f"get({bounds}, {at}) <{'=' if all(befores) else ''} {value}"
        if any(befores) and not all(befores):
            equal = f"get({bounds}, {at}) = {value} AND get({_array(befores, 'boolean')}, {at})"
            below = f"({below} OR ({equal}))"
        nearer = f"IF({code} + {stride} <= {count} AND {below}, {code} + {stride}, {code})"
        code = f"{name}_{number}"
        steps.append({code: nearer})
    found = f"get({_array(cut.classes[1:], 'int')}, {code})"
    steps.append({name: f"IF({value} IS NULL, {cut.classes[0]}, {found})"})
    return steps


def _array(values: Sequence[Any], type_: SqlType) -> str:
    """A constant array as one small expression, which Spark evaluates once: thousands of literals
    would be walked by every rule of its optimizer."""
    text = json.dumps(values).replace("\\", "\\\\").replace("'", "\\'")
    return f"from_json('{text}', 'array<{type_}>')"


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
    wanted: dict[str, list[Selection]] = {}
    others: dict[str, None] = {}
    cuts = {cut.attribute for cut in node.signature.cuts} | {key.sql for key in node.keys}
    for predicate in node.predicates:
        selections = predicate.condition.selections if predicate.condition else ()
        chosen = next((each for each in selections if each.attribute in cuts), None)
        if chosen is None:
            others[predicate.sql] = None
        else:
            wanted.setdefault(chosen.attribute, []).append(chosen)
    parts = [
        Selection(attribute, chosen[0].type, _covered(union([own.values for own in chosen]))).sql
        for attribute, chosen in wanted.items()
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
