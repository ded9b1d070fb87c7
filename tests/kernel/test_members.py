"""The inverted signature index: a shard's members are the predicates that are true on its rows."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.conditions import LITERALS, class_of, predicate, selections, truth, value_of

from weft.algebra.plan import Fragments, Node
from weft.algebra.scalar import Call, Expression, Literal, Ref, Scalar
from weft.algebra.signature import WORD_BITS, Signature, cut_by, membership
from weft.algebra.types import SqlType
from weft.kernel.columns.arrow import arrow_type
from weft.kernel.columns.keys import KeyEncoder
from weft.kernel.fragments.classify import classes
from weft.kernel.fragments.members import Members, SignatureIndex
from weft.kernel.fragments.state import NodeState, Shards
from weft.optimizer.predicates.index import index

ATTRIBUTES: dict[str, SqlType] = {"a": "bigint", "b": "string", "c": "double", "k": "bigint"}
KEY = Expression("`k`", "bigint", ("k",))
CLAUSE = Call("<", (Ref("a", "bigint"), Ref("k", "bigint")), "boolean")
Parts = tuple[Scalar, ...]
Row = Mapping[str, Any]


def joined(parts: Sequence[Scalar]) -> Scalar:
    return parts[0] if len(parts) == 1 else Call("and", tuple(parts), "boolean")


@st.composite
def conjunctions(draw: st.DrawFn) -> Parts:
    """A selection on each of some attributes, and a clause beside them."""
    names = draw(st.sets(st.sampled_from(sorted(ATTRIBUTES)), min_size=1, max_size=3))
    parts = [draw(selections(name, ATTRIBUTES[name])) for name in sorted(names)]
    return (*parts, CLAUSE) if draw(st.booleans()) else tuple(parts)


def rows_of(chance: random.Random, count: int) -> list[dict[str, Any]]:
    return [
        {name: chance.choice([*LITERALS[type_], None]) for name, type_ in ATTRIBUTES.items()}
        for _ in range(count)
    ]


def node_of(signature: Signature, keys: tuple[Expression, ...]) -> Node:
    return Node("n", keys, len(keys), (), False, (), Fragments(pane=10), signature=signature)


def shards_of(
    node: Node, rows: Sequence[Row], conditions: Sequence[Parts], encoder: KeyEncoder
) -> Shards:
    """One shard per row; its bits are evaluated from the conditions of which they are a part."""
    meaning: dict[str, Scalar] = {}
    for parts in conditions:
        for size in range(1, len(parts) + 1):
            for some in combinations(parts, size):
                meaning.setdefault(predicate(joined(some)).sql, joined(some))
    columns = [
        np.array([class_of(row[cut.attribute.strip("`")], cut) for row in rows], np.int32)
        for cut in node.signature.cuts
    ]
    for first in range(0, len(node.signature.bits), WORD_BITS):
        bits = node.signature.bits[first : first + WORD_BITS]
        words = [
            sum((truth(meaning[sql], row) is True) << bit for bit, sql in enumerate(bits))
            for row in rows
        ]
        columns.append(np.array(words, np.int64))
    keys = (
        encoder.encode([pa.array([row["k"] for row in rows], pa.int64())])
        if node.keys
        else np.zeros(len(rows), np.int64)
    )
    ones = np.ones(len(rows), np.int64)
    return Shards(node, NodeState(keys, keys, ones, ones, {}, {}), tuple(columns))


def assert_members(
    conditions: Sequence[Parts],
    indexed_parts: Sequence[Parts],
    rows: Sequence[Row],
    keyed: bool,
    bits: bool,
) -> None:
    """The members that shards with a signature of `known` have are those that brute force finds."""
    keys = (KEY,) if keyed else ()
    indexed = [predicate(joined(parts)) for parts in indexed_parts]
    indexed = [
        candidate for candidate in indexed if candidate.condition and not candidate.condition.never
    ]
    signature = Signature(bits=tuple(dict.fromkeys(p.sql for p in indexed)))
    node = node_of(signature if bits else index(indexed, keys), keys)
    encoder = KeyEncoder([pa.int64()])
    shards = shards_of(node, rows, indexed_parts, encoder)
    numbered = [
        (3 * position, predicate(joined(parts))) for position, parts in enumerate(conditions, 1)
    ]
    members: Members = ((1, None), *numbered)
    decided = {
        number
        for number, expression in numbered
        if membership(expression, node.signature, keys) is not None
    }
    sure = {expression.sql for expression in indexed}
    assert decided >= {number for number, expression in numbered if expression.sql in sure}

    positions, owners = SignatureIndex(node, members).pairs(shards, encoder)

    wanted = [
        (position, number)
        for position, row in enumerate(rows)
        for number, scalar in [(1, None), *zip([n for n, _ in numbered], map(joined, conditions))]
        if scalar is None or (number in decided and truth(scalar, row) is True)
    ]
    assert list(zip(positions.tolist(), owners.tolist(), strict=True)) == wanted


@settings(max_examples=40)
@given(
    st.lists(conjunctions(), min_size=1, max_size=8),
    st.lists(conjunctions(), max_size=2),
    st.randoms(use_true_random=False),
    st.integers(0, 20),
    st.booleans(),
    st.booleans(),
)
def test_members_are_the_predicates_that_are_true(
    indexed_parts: list[Parts],
    new: list[Parts],
    chance: random.Random,
    count: int,
    keyed: bool,
    bits: bool,
) -> None:
    """Also of predicates that the signature does not know, if it decides them: else no rows."""
    assert_members([*indexed_parts, *new], indexed_parts, rows_of(chance, count), keyed, bits)


@pytest.mark.parametrize("bits", [True, False], ids=["bits", "cuts"])
@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "plain"])
def test_signatures_of_several_words(bits: bool, keyed: bool, chance: random.Random) -> None:
    equal = partial(Call, "=", type="boolean")
    conditions = [
        (
            equal((Ref("a", "bigint"), Literal(chance.randrange(40), "bigint"))),
            Call("<", (Ref("c", "double"), Literal(float(number), "double")), "boolean"),
        )
        for number in range(2 * WORD_BITS + 6)
    ]
    rows = [
        {"a": chance.randrange(42), "b": "", "c": chance.uniform(0, 140), "k": chance.randrange(3)}
        for _ in range(200)
    ]
    assert_members(conditions, conditions, rows, keyed, bits)


@settings(max_examples=40)
@given(st.data(), st.sampled_from(sorted(LITERALS)))
def test_classes_of_arrays_are_those_of_their_values(data: st.DataObject, type_: SqlType) -> None:
    drawn = data.draw(st.lists(selections("x", type_), min_size=1, max_size=6))
    conditions = [predicate(scalar).condition for scalar in drawn]
    different = {
        condition.selections[0] for condition in conditions if condition and condition.selections
    }
    literals = data.draw(st.lists(st.sampled_from([*LITERALS[type_], None]), max_size=20))
    values = [value_of(literal, type_) for literal in literals]
    different = {selection for selection in different if not selection.values.empty}
    if different:
        cut = cut_by(sorted(different, key=lambda selection: selection.sql))
        array = pa.array(values, arrow_type(type_))
        assert classes(array, cut).tolist() == [class_of(value, cut) for value in values]
