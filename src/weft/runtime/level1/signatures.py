"""Signatures in native Spark: the class of an attribute by a binary search, other conditions as bits.

A cut with few bounds is searched by nested comparisons with them, a single expression. With many,
the search over b sorted bounds is a chain of log b projections. Each looks at one element of a
constant array, so that the generated code stays small and is compiled, whatever the number of
conditions (`weft bench mixed --only equality`). An expression over all conditions
would be too large for the JIT. Integers begin at a cell of a grid, close to their code. All is Spark
SQL text, nested selects over a relation: one analysis for all steps.
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
"""Intervals in a filter; more are replaced by the one that covers them."""

Relation = str
"""What may stand after FROM."""


def own_name(name: str) -> str:
    """A name that no column of a stream has."""
    return f"weft_9d41f0_{name}"


def made(place: int) -> str:
    """The name of a signature column under way."""
    return own_name(signature_column(place))


@dataclass(frozen=True)
class Places:
    """Which parts of a node's signature rows must show, and which follow from its keys: these are
    found for fragments, of which there are fewer."""

    node: Node
    on_keys: frozenset[str]

    @classmethod
    def of(cls, node: Node) -> Places:
        plain = {key.sql for key in node.keys if stored(key.sql, key.type) == key.sql}
        risky = {each.sql for each in node.predicates if each.condition is None}
        asked = {cut.attribute for cut in node.signature.cuts} | set(node.signature.bits)
        return cls(node, frozenset(sql for sql in asked - risky if determined(sql, plain)))

    @property
    def on_rows(self) -> list[int]:
        """The signature columns that rows have."""
        signature = self.node.signature
        cuts = [i for i, cut in enumerate(signature.cuts) if cut.attribute not in self.on_keys]
        words = [
            len(signature.cuts) + word
            for word in range(signature.words)
            if any(sql not in self.on_keys for sql in _bits_of(signature.bits, word))
        ]
        return [*cuts, *words]

    def with_rows(self, rows: Relation) -> Relation:
        """The rows with the signature columns that do not follow from keys."""
        signature = self.node.signature
        for place, cut in enumerate(signature.cuts):
            if cut.attribute not in self.on_keys:
                rows = with_class(rows, cut, cut.attribute, made(place))
        words = {}
        for word in range(signature.words):
            if len(signature.cuts) + word in self.on_rows:
                bits = _bits_of(signature.bits, word)
                own = [sql if sql not in self.on_keys else None for sql in bits]
                words[made(len(signature.cuts) + word)] = _word(own)
        return selecting(rows, words)

    def with_fragments(self, fragments: Relation) -> Relation:
        """The fragments with all signature columns, under names of their own."""
        signature = self.node.signature
        keys = {key.sql: key_column(place) for place, key in enumerate(self.node.keys)}
        for place, cut in enumerate(signature.cuts):
            if cut.attribute in self.on_keys:
                attribute = over_columns(cut.attribute, keys)
                fragments = with_class(fragments, cut, attribute, made(place))
            else:
                fragments = selecting(fragments, {made(place): signature_column(place)})
        words = {}
        for word in range(signature.words):
            place = len(signature.cuts) + word
            bits = _bits_of(signature.bits, word)
            found = _word([over_columns(b, keys) if b in self.on_keys else None for b in bits])
            shown = f" + {signature_column(place)}" if place in self.on_rows else ""
            words[made(place)] = f"{found}{shown}"
        return selecting(fragments, words)


def _bits_of(bits: Sequence[str], word: int) -> Sequence[str]:
    return bits[word * WORD_BITS : (word + 1) * WORD_BITS]


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
    first = len(node.signature.cuts)
    words = {
        made(first + word): _word(_bits_of(conditions, word))
        for word in range(node.signature.words)
    }
    return selecting(above, words)


def selecting(rows: Relation, columns: dict[str, str]) -> Relation:
    """The rows with more columns.

    >>> selecting("t", {"b": "a + 1"})
    '(SELECT *, a + 1 AS b FROM t)'
    """
    if not columns:
        return rows
    listed = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
    return f"(SELECT *, {listed} FROM {rows})"


def _word(conditions: Sequence[str | None]) -> str:
    """The bits of one signature column; None is a bit that is not known here."""
    bits = [
        f"(CASE WHEN {condition} THEN {1 << bit}L ELSE 0L END)"
        for bit, condition in enumerate(conditions)
        if condition is not None
    ]
    return " + ".join(bits) or "0L"


def with_class(rows: Relation, cut: Cut, attribute: str, name: str) -> Relation:
    """The rows with the class of an attribute's value under a cut."""
    for step in _search(cut, attribute, name):
        rows = selecting(rows, step)
    return rows


@lru_cache(maxsize=256)
def _search(cut: Cut, attribute: str, name: str) -> list[dict[str, str]]:
    """The columns of each step of a search: the value, codes that come ever closer, the class."""
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
    found = f"get({_array(cut.classes[1:], 'int')}, {code})"
    steps.append({name: f"IF({value} IS NULL, {cut.classes[0]}, {found})"})
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
    """A code to begin with, and how many bounds the right one may be above it. For integers, a
    grid of equal cells says how many bounds lie below each; a cell holds few of them."""
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
    within = max(after - own for own, after in zip(below, [*below[1:], count], strict=True))
    inside = f"greatest(least(cast({value} AS bigint), {high}L), {low}L)"
    return f"get({_array(below, 'int')}, cast(({inside} - {low}L) div {width}L AS int))", within


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
    ranges = [interval for interval in values.intervals if not is_point(interval)]
    if len(ranges) <= MOST_INTERVALS:
        return values
    return Values(((values.intervals[0][0], values.intervals[-1][1]),), values.null)
