"""Signatures in native Spark: a binary search gives the class of an attribute; other conditions are bits.

A cut with few bounds is one expression of nested comparisons. For many bounds, that expression would be
too large for the JIT. Then the search over b sorted bounds is a chain of log b projections, each of
which looks at one element of a constant array. So the generated code stays small and is compiled,
whatever the number of conditions (`weft bench mixed --only equality`). The search for an integer begins
at a cell of a grid, close to its code. Everything is Spark SQL text, nested selects over a relation, so
that Spark analyses all steps at once.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from weft.algebra.aggregate import stored
from weft.algebra.condition import Selection, Values, constant, constant_sql, is_point, union
from weft.algebra.nodes.selectors import determined, over_columns
from weft.algebra.plan import Node
from weft.algebra.signature import WORD_BITS, Cut
from weft.algebra.types import INTEGRAL, SqlType
from weft.kernel.fragments.state import key_column, signature_column

_MOST_COMPARED = 32
_FEWEST_FOR_A_GRID = 32
_CELLS_PER_BOUND = 4
_MOST_CELLS = 8192
MOST_INTERVALS = 32
"""The most intervals in a filter; more are replaced by one interval that covers them all."""

RelationSql = str
"""What may stand after FROM."""


def own_name(name: str) -> str:
    """A name that no column of a stream has."""
    return f"weft_9d41f0_{name}"


def signature_name(index: int) -> str:
    """The name of a signature column before it is grouped by."""
    return own_name(signature_column(index))


@dataclass(frozen=True)
class Places:
    """Where the parts of a node's signature are computed: for every row, or, if they follow from its
    keys, for every fragment. There are fewer fragments than rows."""

    node: Node
    on_keys: frozenset[str]

    @classmethod
    def of(cls, node: Node) -> Places:
        plain = {key.sql for key in node.keys if stored(key.sql, key.type) == key.sql}
        risky = {predicate.sql for predicate in node.predicates if predicate.condition is None}
        attributes = {cut.attribute for cut in node.signature.cuts} | set(node.signature.bits)
        return cls(node, frozenset(sql for sql in attributes - risky if determined(sql, plain)))

    @property
    def on_rows(self) -> list[int]:
        """The signature columns that are computed for every row."""
        signature = self.node.signature
        cuts = [i for i, cut in enumerate(signature.cuts) if cut.attribute not in self.on_keys]
        words = [
            len(signature.cuts) + word
            for word in range(signature.words)
            if any(sql not in self.on_keys for sql in _bits_of(signature.bits, word))
        ]
        return [*cuts, *words]

    def with_rows(self, rows: RelationSql) -> RelationSql:
        """The rows with the signature columns that do not follow from keys."""
        signature = self.node.signature
        for index, cut in enumerate(signature.cuts):
            if cut.attribute not in self.on_keys:
                rows = with_class(rows, cut, cut.attribute, signature_name(index))
        words = {}
        for word in range(signature.words):
            index = len(signature.cuts) + word
            if index in self.on_rows:
                bits = _bits_of(signature.bits, word)
                row_bits = [sql if sql not in self.on_keys else None for sql in bits]
                words[signature_name(index)] = _word(row_bits)
        return selecting(rows, words)

    def with_fragments(self, fragments: RelationSql) -> RelationSql:
        """The fragments with all signature columns, named by `signature_name`."""
        signature = self.node.signature
        keys = {key.sql: key_column(index) for index, key in enumerate(self.node.keys)}
        for index, cut in enumerate(signature.cuts):
            if cut.attribute in self.on_keys:
                attribute = over_columns(cut.attribute, keys)
                fragments = with_class(fragments, cut, attribute, signature_name(index))
            else:
                fragments = selecting(fragments, {signature_name(index): signature_column(index)})
        words = {}
        for word in range(signature.words):
            index = len(signature.cuts) + word
            bits = _bits_of(signature.bits, word)
            key_bits = _word([over_columns(b, keys) if b in self.on_keys else None for b in bits])
            row_bits = f" + {signature_column(index)}" if index in self.on_rows else ""
            words[signature_name(index)] = f"{key_bits}{row_bits}"
        return selecting(fragments, words)


def _bits_of(bits: Sequence[str], word: int) -> Sequence[str]:
    return bits[word * WORD_BITS : (word + 1) * WORD_BITS]


def with_signature_of(above: RelationSql, parent: Node, node: Node) -> RelationSql:
    """A parent's fragments with the signature columns of a node below it. A cut of the node is also a
    cut of the parent, or is searched in a key. Its bits are some of the parent's bits."""
    parent_cuts = {cut.attribute: index for index, cut in enumerate(parent.signature.cuts)}
    keys = {key.sql: key_column(index) for index, key in enumerate(parent.keys)}
    for index, cut in enumerate(node.signature.cuts):
        name = signature_name(index)
        if cut.attribute in parent_cuts:
            above = selecting(above, {name: signature_column(parent_cuts[cut.attribute])})
        else:
            above = with_class(above, cut, keys[cut.attribute], name)
    parent_bits = {sql: index for index, sql in enumerate(parent.signature.bits)}
    conditions = []
    for sql in node.signature.bits:
        word, bit = divmod(parent_bits[sql], WORD_BITS)
        column = signature_column(len(parent.signature.cuts) + word)
        conditions.append(f"({column} & {1 << bit}L) != 0L")
    first = len(node.signature.cuts)
    words = {
        signature_name(first + word): _word(_bits_of(conditions, word))
        for word in range(node.signature.words)
    }
    return selecting(above, words)


def selecting(rows: RelationSql, columns: dict[str, str]) -> RelationSql:
    """The rows with more columns.

    >>> selecting("t", {"b": "a + 1"})
    '(SELECT *, a + 1 AS b FROM t)'
    """
    if not columns:
        return rows
    listed = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
    return f"(SELECT *, {listed} FROM {rows})"


def _word(conditions: Sequence[str | None]) -> str:
    """The bits of one signature column; None is a bit that is not computed here."""
    bits = [
        f"(CASE WHEN {condition} THEN {1 << bit}L ELSE 0L END)"
        for bit, condition in enumerate(conditions)
        if condition is not None
    ]
    return " + ".join(bits) or "0L"


def with_class(rows: RelationSql, cut: Cut, attribute: str, name: str) -> RelationSql:
    """The rows with the class of an attribute's value under a cut."""
    for step in _search(cut, attribute, name):
        rows = selecting(rows, step)
    return rows


@lru_cache(maxsize=256)
def _search(cut: Cut, attribute: str, name: str) -> list[dict[str, str]]:
    """The columns that each step of a search adds: the value, ever closer codes, the class."""
    value, count = f"{name}_value", len(cut.bounds)
    if count <= _MOST_COMPARED:
        compared = _compared(cut, value, 0, count)
        return [{value: attribute}, {name: f"IF({value} IS NULL, {cut.classes[0]}, {compared})"}]
    bounds = _array([constant(bound.value, cut.type) for bound in cut.bounds], cut.type)
    befores = [not bound.after for bound in cut.bounds]
    code = f"{name}_0"
    start, within = _start(cut, value)
    steps = [{value: attribute}, {code: start}]
    for number, stride in enumerate(_strides(within), 1):
        at = f"{code} + {stride - 1}"
        below = f"get({bounds}, {at}) <{'=' if all(befores) else ''} {value}"
        if any(befores) and not all(befores):
            equal = f"get({bounds}, {at}) = {value} AND get({_array(befores, 'boolean')}, {at})"
            below = f"({below} OR ({equal}))"
        nearer = f"IF({code} + {stride} <= {count} AND {below}, {code} + {stride}, {code})"
        code = f"{name}_{number}"
        steps.append({code: nearer})
    class_ = f"get({_array(cut.classes[1:], 'int')}, {code})"
    steps.append({name: f"IF({value} IS NULL, {cut.classes[0]}, {class_})"})
    return steps


def _compared(cut: Cut, value: str, low: int, high: int) -> str:
    """The class of a value whose code is between two codes, by comparisons."""
    classes = set(cut.classes[low + 1 : high + 2])
    if len(classes) == 1:
        return str(classes.pop())
    middle = (low + high) // 2
    bound = cut.bounds[middle]
    above = f"{value} {'>' if bound.after else '>='} {constant_sql(bound.value, cut.type)}"
    higher = _compared(cut, value, middle + 1, high)
    return f"IF({above}, {higher}, {_compared(cut, value, low, middle)})"


def _start(cut: Cut, value: str) -> tuple[str, int]:
    """A code to begin the search with, and how far above it the right code may be. For integers, a
    grid of equal cells says how many bounds lie below each cell; a cell holds few bounds."""
    count = len(cut.bounds)
    integers = [bound.value for bound in cut.bounds if isinstance(bound.value, int)]
    if cut.type not in INTEGRAL or len(integers) < max(count, _FEWEST_FOR_A_GRID):
        return "0", count
    low, high = integers[0], integers[-1]
    if high - low >= 1 << 62:
        return "0", count
    cells = min(_CELLS_PER_BOUND * count, _MOST_CELLS)
    width = -(-(high - low + 1) // cells)
    firsts = [low + cell * width for cell in range((high - low) // width + 1)]
    below = [bisect_right(integers, first - 1) for first in firsts]
    ends = [*below[1:], count]
    within = max(end - start for start, end in zip(below, ends, strict=True))
    inside = f"greatest(least(cast({value} AS bigint), {high}L), {low}L)"
    return f"get({_array(below, 'int')}, cast(({inside} - {low}L) div {width}L AS int))", within


def _array(values: Sequence[Any], type_: SqlType) -> str:
    """A constant array as one small expression, which Spark evaluates once. With an array of literals,
    every rule of Spark's optimizer would visit thousands of them."""
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
    """A cheap filter for the rows of a node; None if all rows are wanted. It keeps every row that some
    predicate wants, and drops most others: for each attribute it is the union of all wanted
    values."""
    if node.keeps_all_rows or not node.predicates:
        return None
    wanted: dict[str, list[Selection]] = {}
    others: dict[str, None] = {}
    attributes = {cut.attribute for cut in node.signature.cuts} | {key.sql for key in node.keys}
    for predicate in node.predicates:
        selections = predicate.condition.selections if predicate.condition else ()
        indexed = next((s for s in selections if s.attribute in attributes), None)
        if indexed is None:
            others[predicate.sql] = None
        else:
            wanted.setdefault(indexed.attribute, []).append(indexed)
    parts = [
        Selection(
            attribute, selections[0].type, _covered(union([s.values for s in selections]))
        ).sql
        for attribute, selections in wanted.items()
    ]
    parts += [f"coalesce({sql}, false)" for sql in others]
    return " OR ".join(parts)


def _covered(values: Values) -> Values:
    """The same values; if too many intervals are not single points, one interval that covers all."""
    ranges = [interval for interval in values.intervals if not is_point(interval)]
    if len(ranges) <= MOST_INTERVALS:
        return values
    return Values(((values.intervals[0][0], values.intervals[-1][1]),), values.null)
