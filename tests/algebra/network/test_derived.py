"""Derived streams: their names, and what is claimed of their event times, by brute force."""

from __future__ import annotations

import itertools
import random
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.network_steps import SECOND, difference

from weft.algebra.network.derived import DerivedStream, canonical_order, is_derived
from weft.algebra.network.query import JoinInput
from weft.algebra.predicates import PredicateSet
from weft.algebra.predicates.predicate_set import all_of
from weft.catalog.names import check_name
from weft.errors import CatalogError


@dataclass(frozen=True)
class Bounded:
    """A join whose conditions are limits of differences of event times, in seconds."""

    stream: DerivedStream
    limits: tuple[tuple[int, int, int, int], ...]
    """(i, j, low, high): low <= t_j - t_i <= high."""

    def matches(self, times: tuple[int, ...]) -> bool:
        return all(low <= times[j] - times[i] <= high for i, j, low, high in self.limits)


@st.composite
def joins(draw: st.DrawFn) -> Bounded:
    """Two or three inputs of streams a and b, each bounded by one before it."""
    relations = draw(st.lists(st.sampled_from("ab"), min_size=2, max_size=3))
    limits = []
    for slot in range(1, len(relations)):
        low = draw(st.integers(-4, 4))
        other = draw(st.integers(0, slot - 1))
        limits.append((other, slot, low, low + draw(st.integers(0, 4))))
    predicates = all_of(
        difference(relations, (j, "ts"), (i, "ts"), low * SECOND, high * SECOND).predicate
        for i, j, low, high in limits
    )
    inputs = tuple(JoinInput(name, f"r{slot}") for slot, name in enumerate(relations))
    slot = draw(st.integers(0, len(relations) - 1))
    stream = DerivedStream(inputs, predicates, ("ts",) * len(inputs), slot)
    return Bounded(stream, tuple(limits))


@dataclass(frozen=True)
class Arrival:
    """A row of a stream: the step that admits it, and its event time in seconds."""

    relation: str
    step: int
    time: int


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[list[int], list[Arrival]]:
    """Watermarks of some steps, and the rows that they admit: those above the watermark before."""
    steps = draw(st.integers(2, 4))
    marks = sorted(draw(st.lists(st.integers(0, 12), min_size=steps, max_size=steps)))
    rows = []
    for step in range(steps):
        before = marks[step - 1] if step else 0
        for relation in "ab":
            for time in draw(st.lists(st.integers(1, 18), max_size=4)):
                if time > before:
                    rows.append(Arrival(relation, step, time))
    return marks, rows


def joined(join: Bounded, rows: list[Arrival]) -> list[tuple[Arrival, ...]]:
    sides = [[row for row in rows if row.relation == e.relation] for e in join.stream.inputs]
    return [
        match
        for match in itertools.product(*sides)
        if join.matches(tuple(row.time for row in match))
    ]


@given(joins(), arrivals())
def test_no_row_is_ever_late(join: Bounded, arrived: tuple[list[int], list[Arrival]]) -> None:
    marks, rows = arrived
    delay = join.stream.delay
    assert delay % SECOND == 0
    for match in joined(join, rows):
        step = max(row.step for row in match)  # the step that finds it
        before = marks[step - 1] if step else 0
        assert match[join.stream.slot].time > before - delay // SECOND


@given(joins(), arrivals(), st.integers(1, 3))
def test_windows_that_are_called_complete_lack_no_match(
    join: Bounded, arrived: tuple[list[int], list[Arrival]], registered: int
) -> None:
    _, rows = arrived
    unseen: dict[str, int] = {}
    for row in rows:
        if row.step < registered:
            unseen[row.relation] = max(row.time * SECOND, unseen.get(row.relation, 0))
    first = join.stream.complete_from(unseen)
    lacking = [
        match
        for match in joined(join, rows)
        if any(row.step < registered and row.relation in unseen for row in match)
    ]
    for match in lacking:
        assert first is not None
        assert match[join.stream.slot].time * SECOND < first


@given(joins(), st.randoms(use_true_random=False))
def test_the_order_of_inputs_does_not_matter(join: Bounded, chance: random.Random) -> None:
    stream = canonical(join.stream)
    places = list(range(len(stream.inputs)))
    chance.shuffle(places)
    order = dict(enumerate(places))
    moved = replace(
        stream,
        inputs=tuple(stream.inputs[places.index(place)] for place in range(len(places))),
        predicates=stream.predicates.moved(order),
        slot=order[stream.slot],
    )
    assert canonical(moved).name == stream.name


def canonical(stream: DerivedStream) -> DerivedStream:
    order = canonical_order(stream.inputs, stream.predicates, stream.slot)
    inputs = sorted(enumerate(stream.inputs), key=lambda pair: order[pair[0]])
    return replace(
        stream,
        inputs=tuple(entry for _, entry in inputs),
        predicates=stream.predicates.moved(order),
        slot=order[stream.slot],
    )


def test_an_input_without_bounds_is_named() -> None:
    inputs = (JoinInput("a", "x"), JoinInput("b", "y"))
    later = difference(("a", "b"), (1, "ts"), (0, "ts"), 0, None).predicate
    both = difference(("a", "b"), (1, "ts"), (0, "ts"), 0, 5).predicate
    half = DerivedStream(inputs, PredicateSet((later,)), ("ts", "ts"), 0)
    assert half.unbounded == "y.ts <= x.ts + INTERVAL 1 HOUR"
    whole = replace(half, predicates=PredicateSet((both,)))
    assert whole.unbounded is None
    assert (whole.delay, whole.reach) == (5, (("a", 0), ("b", 0)))
    other = replace(whole, slot=1)
    assert (other.delay, other.reach) == (0, (("a", 5), ("b", 0)))
    assert len({half.name, whole.name, other.name}) == 3


def test_no_user_can_give_a_stream_such_a_name() -> None:
    inputs = (JoinInput("a", "x"), JoinInput("b", "y"))
    name = DerivedStream(inputs, PredicateSet(), ("ts", "ts"), 0).name
    assert is_derived(name)
    with pytest.raises(CatalogError):
        check_name(name, "stream")


def test_columns_of_a_second_input_of_one_relation_have_names_of_their_own() -> None:
    inputs = (JoinInput("a", "x"), JoinInput("a", "y"), JoinInput("a.b", "z"))
    stream = DerivedStream(inputs, PredicateSet(), ("ts", "ts", ""), 1)
    names = ["0.ts", "1.ts", "2.c.d"]
    columns = [stream.column(name) for name in names]
    assert columns == ["a.ts", "a#2.ts", "a_b.c.d"]
    assert [stream._of_join(column) for column in columns] == names
    assert stream.time == "a#2.ts"
