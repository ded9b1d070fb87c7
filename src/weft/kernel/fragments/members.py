"""The inverted signature index between level 1 and level 2: which predicates a shard satisfies.

From: the IPS of the TriOps paper, section IV-B. There a signature points to its fragments, and
a weave group to the signatures it needs; a fragment is freed when its last reader is done. Here a
shard is read once per step, from the files of the step: for each distinct signature among the
shards the predicates that it satisfies are found, and every shard becomes one row of each of these
*members* of the pool. Level 2 coalesces them, and the shards are gone from memory; their files
stay until no open window needs them.

Predicates are found by the first of the tests that they consist of: a list of members per class of
a cut, or per bit. The other tests are looked up for these candidates only. So a thousand equality
conditions on one attribute cost each shard one look-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from weft.algebra.plan import Node
from weft.algebra.scalar import Expression
from weft.algebra.signature import WORD_BITS, Cut, Membership, Signature, cut_by, membership
from weft.kernel.columns.arrow import factorized
from weft.kernel.columns.keys import KeyEncoder
from weft.kernel.columns.operations import Array
from weft.kernel.columns.sorting import ordered
from weft.kernel.fragments.classify import classes
from weft.kernel.fragments.state import MEMBER_SHIFT, NodeState, Shards

Members = tuple[tuple[int, Expression | None], ...]
"""Predicates, None for all rows, by the numbers that they have in all pools of a query."""


@dataclass(frozen=True)
class _Test:
    """A condition on a column of signatures: it has one of some classes, or a bit."""

    column: int
    classes: frozenset[int] | None
    bit: int = 0


class SignatureIndex:
    """Finds the members of shards that one node wrote; members are predicates, None for all rows.

    A predicate that the node's signature does not decide has no rows.
    """

    def __init__(self, node: Node, members: Members) -> None:
        self._key_cuts = _key_cuts(node, members)
        self._tests: dict[int, list[_Test]] = {}
        for number, predicate in members:
            asked = Membership()
            if predicate is not None:
                decided = membership(predicate, node.signature, node.keys)
                if decided is None:
                    continue
                asked = decided
            self._tests[number] = self._tests_of(asked, node.signature)

    def _tests_of(self, asked: Membership, signature: Signature) -> list[_Test]:
        """The tests of a predicate, the most selective one first."""
        tests = [_Test(column, chosen) for column, chosen in asked.classes]
        cuts, stored = len(signature.cuts), signature.columns
        for key, selection in asked.keys:
            column = list(self._key_cuts).index(key)
            chosen = self._key_cuts[key].chosen(selection)
            assert chosen is not None, "a cut divides by all selections it was made of"
            tests.append(_Test(stored + column, chosen))
        tests.sort(key=lambda test: len(test.classes or ()))
        if asked.bit is not None:
            word, bit = divmod(asked.bit, WORD_BITS)
            tests.append(_Test(cuts + word, None, bit))
        return tests

    def pairs(self, shards: Shards, encoder: KeyEncoder) -> tuple[Array, Array]:
        """Positions of rows and the members they belong to, row by row."""
        rows = shards.rows
        columns = [*shards.signature, *self._key_columns(rows, encoder)]
        signatures, first = _distinct(columns, len(rows))
        values = [column[first] for column in columns]
        places, members = self._members(values, len(first))
        order = np.lexsort((members, places))
        places, members = places[order], members[order]
        counts = np.bincount(places, minlength=len(first))
        offsets = np.cumsum(counts) - counts
        repeated = counts[signatures]
        positions = np.repeat(np.arange(len(rows)), repeated)
        ordinals = np.arange(len(positions)) - np.repeat(np.cumsum(repeated) - repeated, repeated)
        return positions, members[offsets[signatures][positions] + ordinals]

    def _key_columns(self, rows: NodeState, encoder: KeyEncoder) -> list[Array]:
        if not self._key_cuts:
            return []
        codes, places = factorized(rows.keys)
        return [
            classes(encoder.decode(key, codes), cut)[places] for key, cut in self._key_cuts.items()
        ]

    def _members(self, values: Sequence[Array], signatures: int) -> tuple[Array, Array]:
        """The (signature, member) pairs in which the member's predicate is true."""
        candidates: list[tuple[Array, Array]] = [(_NONE, _NONE)]
        by_class: dict[int, dict[int, list[int]]] = {}
        by_bit: dict[_Test, list[int]] = {}
        for member, tests in self._tests.items():
            if not tests:
                candidates.append((np.arange(signatures), np.full(signatures, member)))
            elif tests[0].classes is None:
                by_bit.setdefault(tests[0], []).append(member)
            else:
                lists = by_class.setdefault(tests[0].column, {})
                for class_ in tests[0].classes:
                    lists.setdefault(class_, []).append(member)
        for column, lists in by_class.items():
            candidates.append(_listed(values[column], lists))
        for test, owners in by_bit.items():
            places = np.flatnonzero((values[test.column] >> test.bit) & 1)
            candidates.append((np.repeat(places, len(owners)), np.tile(owners, len(places))))
        places = np.concatenate([pair[0] for pair in candidates])
        members = np.concatenate([pair[1] for pair in candidates])
        return self._that_pass(values, places, members)

    def _that_pass(
        self, values: Sequence[Array], places: Array, members: Array
    ) -> tuple[Array, Array]:
        """The candidates that also pass their other tests; a member has at most one test per column."""
        others: dict[int, list[tuple[int, _Test]]] = {}
        for member, tests in self._tests.items():
            for test in tests[1:]:
                others.setdefault(test.column, []).append((member, test))
        passes = np.ones(len(places), bool)
        for column, owners in others.items():
            tested = np.zeros(int(members.max(initial=0)) + 1, bool)
            tested[[member for member, _ in owners if member < len(tested)]] = True
            asked = np.flatnonzero(tested[members] & passes)
            tested_values = values[column][places[asked]]
            passes[asked] = _pass(owners, members[asked], tested_values)
        return places[passes], members[passes]


def _pass(owners: Sequence[tuple[int, _Test]], members: Array, values: Array) -> Array:
    """Whether values pass the tests of their members on one column."""
    if owners[0][1].classes is None:
        bits = np.zeros(max(member for member, _ in owners) + 1, np.int64)
        for member, test in owners:
            bits[member] = test.bit
        set_: Array = (values >> bits[members]) & 1 == 1
        return set_
    width = int(values.max(initial=0)) + 1
    allowed = [
        member * width + class_
        for member, test in owners
        for class_ in test.classes or ()
        if class_ < width
    ]
    return np.isin(members * width + values, allowed)


class SignatureIndexes:
    """The indexes of the nodes of several plan versions for the same members, made once."""

    def __init__(self, members: Members) -> None:
        self.members = members
        self._known: dict[int, tuple[Node, SignatureIndex]] = {}

    def of(self, node: Node) -> SignatureIndex:
        indexed = self._known.get(id(node))
        if indexed is None:
            indexed = self._known[id(node)] = (node, SignatureIndex(node, self.members))
        return indexed[1]


def expanded(
    shards: Shards,
    indexes: SignatureIndexes,
    encoder: KeyEncoder,
    partials: frozenset[str],
) -> NodeState:
    """The shards as rows of members, sorted: member by member, each in the order of the shards."""
    rows = shards.rows.narrowed(partials)
    if indexes.members != ((0, None),):
        positions, owners = indexes.of(shards.node).pairs(shards, encoder)
        order, owners = ordered(owners)
        chosen = rows.select(positions[order])
        above = owners << MEMBER_SHIFT
        keys = chosen.keys | above
        groups = keys if chosen.groups is chosen.keys else chosen.groups | above
        rows = replace(chosen, keys=keys, groups=groups)
    return rows


_NONE = np.zeros(0, np.int64)


def _key_cuts(node: Node, members: Members) -> dict[int, Cut]:
    """For every key that predicates select by, the cut by all their selections."""
    places = {key.sql: position for position, key in enumerate(node.keys)}
    selected: dict[int, dict[str, None]] = {}
    selections = {}
    for _, predicate in members:
        if predicate is None or predicate.condition is None:
            continue
        for selection in predicate.condition.selections:
            if selection.attribute in places:
                selected.setdefault(places[selection.attribute], {})[selection.sql] = None
                selections[selection.sql] = selection
    return {key: cut_by([selections[sql] for sql in texts]) for key, texts in selected.items()}


def _distinct(columns: Sequence[Array], rows: int) -> tuple[Array, Array]:
    """The signature of each row as a number, and the first row of each."""
    combined = np.zeros(rows, np.int64)
    for column in columns:
        distinct, codes = factorized(column)
        _, combined = factorized(combined * len(distinct) + codes)
    first = np.zeros(int(combined.max(initial=-1)) + 1, np.int64)
    first[combined[::-1]] = np.arange(rows - 1, -1, -1)
    return combined, first


def _listed(values: Array, lists: dict[int, list[int]]) -> tuple[Array, Array]:
    """For each value the members that are listed under it."""
    order = sorted(lists)
    members = np.concatenate([np.array(lists[value], np.int64) for value in order])
    counts = np.array([len(lists[value]) for value in order])
    offsets = np.cumsum(counts) - counts
    places = np.searchsorted(order, values)
    listed = np.flatnonzero(
        (places < len(order)) & (np.array(order)[places % len(order)] == values)
    )
    taken = places[listed]
    repeated = counts[taken]
    signatures = np.repeat(listed, repeated)
    ordinals = np.arange(len(signatures)) - np.repeat(np.cumsum(repeated) - repeated, repeated)
    return signatures, members[np.repeat(offsets[taken], repeated) + ordinals]
