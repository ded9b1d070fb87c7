"""Several aggregation joins over the same contents as one physical join (docs/decisions/0019).

Queries whose inputs have the same contents and equality keys join once. The conditions that all of them have are tested in the join; the
others, and the selections of each query, are bits: a query takes its joined entries out of every block, and groups them by itself. So the work of joining
is paid once, and grouping by each query.

Time: that of the join (`join`), plus for each query one test of every joined entry, and the grouping of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.partial import Partial
from weft.algebra.predicates import LiteralPredicate, OrPredicate, PredicateSet
from weft.algebra.predicates.slots import column_name, moved
from weft.kernel.columns.column import Column
from weft.kernel.columns.operations import Array
from weft.kernel.failure import NeedsSpark, QueryFailure, would_raise
from weft.kernel.joinagg.contents.held import Contents
from weft.kernel.joinagg.entries import Entries
from weft.kernel.joinagg.groups.grouping import Grouping
from weft.kernel.joinagg.groups.lowering import computed, lowered, needed, to_table
from weft.kernel.joinagg.join import BLOCK, Joined, Matching, Search, join_steps
from weft.kernel.network.conditions import Compiler, Evaluation
from weft.kernel.network.joins.keys import equalities

TEST = 0.07
"""What it costs to test a joined entry for one more query, as part of what it costs to join it."""


@dataclass(frozen=True)
class Side:
    """An input as a plan gives it: its entries, whether they are merged by key before the join (early), and
    whether they are the same at every instant."""

    entries: Entries
    early: bool
    partials: tuple[Partial, ...]
    """Those of the aggregates on this input."""
    always: bool = False

    def contents(self, instants: Array) -> Contents:
        merged = self.partials if self.early else None
        return self.entries.always(merged) if self.always else self.entries.at(instants, merged)


class Contained(Protocol):
    """An input that has contents at instants."""

    def contents(self, instants: Array) -> Contents: ...


class Remembered:
    """An input that several joins read: its contents at the same instants are made once, with all that is found out about them."""

    def __init__(self, side: Contained) -> None:
        self._side = side
        self._last: tuple[Array, Contents] | None = None

    def contents(self, instants: Array) -> Contents:
        if self._last is None or not np.array_equal(self._last[0], instants):
            self._last = instants, self._side.contents(instants)
        return self._last[1]


class Tally:
    """Counts the joined entries of queries: what of their joins statistics of single streams cannot tell."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def add(self, query_id: str, count: int) -> None:
        self._counts[query_id] = self._counts.get(query_id, 0) + count

    def of(self, query_id: str) -> int:
        return self._counts.get(query_id, 0)


@dataclass(frozen=True)
class Member:
    """One of the queries that join together."""

    query: AggregationJoin
    partials: Sequence[tuple[Partial, ...]]
    """Those of each aggregate, in the order in which it is lowered."""
    selections: Mapping[int, str] = field(default_factory=dict)
    """By input, the column of truth values that says which entries are the query's; without one, all are."""
    instants: Array | None = None
    """Those that it shows; None: all."""
    tally: Tally | None = None
    """Where its joined entries are counted."""


def keys_of(query: AggregationJoin) -> frozenset[LiteralPredicate]:
    """The equalities by which a query finds its joined entries."""
    slots = range(1, len(query.inputs))
    return frozenset(literal for slot in slots for literal in equalities(query.predicates, slot))


def evaluated_together(
    members: Sequence[Member],
    sides: Sequence[Contained],
    instants: Array,
    *,
    ansi: bool,
    block: int = BLOCK,
    matched: Sequence[int] = (),
) -> list[pa.Table | QueryFailure]:
    """For each query its groups at instants, before HAVING and projection: `at`, keys `k0…`, aggregates `a0…`; or why it
    failed. All have the same equality keys. `matched` are inputs whose entries of one place belong together: they are joined already."""
    grouped = _or_failures(members, sides, instants, ansi, block, matched)
    return [one if isinstance(one, QueryFailure) else one.result(instants) for one in grouped]


def parts_together(
    members: Sequence[Member],
    sides: Sequence[Contained],
    instants: Array,
    *,
    ansi: bool,
    block: int = BLOCK,
    matched: Sequence[int] = (),
) -> list[pa.Table | QueryFailure]:
    """The same over a part of the entries: partial groups (`lowering`)."""
    grouped = _or_failures(members, sides, instants, ansi, block, matched)
    return [one if isinstance(one, QueryFailure) else one.part() for one in grouped]


def _or_failures(
    members: Sequence[Member],
    sides: Sequence[Contained],
    instants: Array,
    ansi: bool,
    block: int,
    matched: Sequence[int],
) -> Sequence[_Running | QueryFailure]:
    try:
        return _grouped(members, sides, instants, ansi, block, matched)
    except NeedsSpark as problem:
        failure = would_raise("a key", problem)
    except QueryFailure as error:
        failure = error
    return [
        QueryFailure(failure.error_class, failure.message, (member.query.id,)) for member in members
    ]


def _grouped(
    members: Sequence[Member],
    sides: Sequence[Contained],
    instants: Array,
    ansi: bool,
    block: int,
    matched: Sequence[int],
) -> list[_Running]:
    contents = [side.contents(instants) for side in sides]
    common = _common([member.query for member in members])
    order = _order(common, contents, matched)
    places = {slot: place for place, slot in enumerate(order)}
    ordered = [contents[slot] for slot in order]
    running = [_Running(member, common, places, ordered, instants, ansi) for member in members]
    steps = join_steps(common.moved(places), len(order))
    search = Search.of(ordered, steps, ansi=ansi, matched=max(1, len(matched)))
    if search is None:
        return running
    sets = search.matching()
    joining = [one for one in running if sets is None or not one.multiply(sets)]
    for part in search.joined(block) if joining else ():
        for one in joining:
            one.add(part)
    return running


def _common(queries: Sequence[AggregationJoin]) -> PredicateSet:
    """The conditions between inputs that all queries have."""
    first, *others = (query.predicates for query in queries)
    if not others:
        return first
    return PredicateSet(
        tuple(p for p in first.predicates if all(p in other.predicates for other in others))
    )


class _Running:
    """The groups of one query, while the join goes on."""

    def __init__(
        self,
        member: Member,
        common: PredicateSet,
        places: Mapping[int, int],
        contents: Sequence[Contents],
        instants: Array,
        ansi: bool,
    ) -> None:
        self._member, self._ansi = member, ansi
        query = member.query
        self._grouping = Grouping(
            [moved(key, places) for key in query.keys],
            needed(query, member.partials),
            contents,
            instants,
            ansi=ansi,
            places=places,
            computed=[one.in_order(places) for one in computed(query, member.partials)],
        )
        own = [p for p in query.predicates.predicates if p not in common.predicates]
        self._tests = _Tests([p.moved(places) for p in own if len(p.slots) > 1])
        self._bits = [
            (places[slot], truth(contents[places[slot]].rows.column(column_name(0, name))))
            for slot, name in member.selections.items()
        ]
        self._failure: QueryFailure | None = None

    def multiply(self, sets: Matching) -> bool:
        """Take all groups of two aggregation sets without joining them, if that can and should be done."""
        return not self._tests and not self._bits and self._grouping.multiply(sets)

    def add(self, part: Joined) -> None:
        """Take what is the query's out of a block."""
        if self._failure is not None:
            return
        try:
            taken = self._tests.passing(self._selected(part), self._ansi)
            if self._member.tally is not None:
                self._member.tally.add(self._member.query.id, taken.count)
            self._grouping.add(taken)
        except QueryFailure as failure:
            self._fail(failure)
        except NeedsSpark as problem:
            self._fail(would_raise("a key", problem))

    def _selected(self, part: Joined) -> Joined:
        chosen: Array | None = None
        for place, bits in self._bits:
            true = bits[part.positions[place]]
            chosen = true if chosen is None else chosen & true
        return part if chosen is None else part.only(np.flatnonzero(chosen))

    def _fail(self, failure: QueryFailure) -> None:
        query_id = self._member.query.id
        self._failure = QueryFailure(failure.error_class, failure.message, (query_id,))

    def result(self, instants: Array) -> pa.Table | QueryFailure:
        """The query's groups, lowered."""
        member = self._member
        shown = instants if member.instants is None else member.instants
        return self._made(
            lambda: lowered(member.query, member.partials, self._grouping, shown, ansi=self._ansi)
        )

    def part(self) -> pa.Table | QueryFailure:
        """The query's groups as they are."""
        member = self._member
        return self._made(lambda: to_table(member.query, member.partials, self._grouping))

    def _made(self, make: Callable[[], pa.Table]) -> pa.Table | QueryFailure:
        if self._failure is None:
            try:
                return make()
            except QueryFailure as failure:
                self._fail(failure)
        assert self._failure is not None
        return self._failure


class _Tests:
    """The conditions that one query has, and not all."""

    def __init__(self, predicates: Sequence[OrPredicate]) -> None:
        compiler = Compiler()
        self._numbers = compiler.numbers(tuple(predicates))
        self._conditions = compiler.compiled()

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def passing(self, part: Joined, ansi: bool) -> Joined:
        if not self._numbers:
            return part
        evaluation = Evaluation(self._conditions, part, ansi=ansi)
        return part.only(evaluation.filtered(self._numbers))


def truth(values: Column) -> Array:
    """By entry, whether a truth value is true: neither false nor NULL."""
    true: Array = values.values.astype(bool)
    return true if values.valid is None else true & values.valid


def _order(
    predicates: PredicateSet, contents: Sequence[Contents], matched: Sequence[int]
) -> list[int]:
    """The inputs, matched ones first, then small ones, each connected by a condition to those before it if there is one. The first
    one has instants: tables do not."""
    order = list(matched)
    rest = set(range(len(contents))) - {*order}
    if not order:
        by_size = lambda slot: (contents[slot].instants is None, len(contents[slot]), slot)  # noqa: E731
        order = [min(rest, key=by_size)]
        rest.remove(order[0])
    while rest:
        joined_slots = set(order)
        following = min(
            rest,
            key=lambda slot: (
                not _connected(predicates, slot, joined_slots),
                len(contents[slot]),
                slot,
            ),
        )
        order.append(following)
        rest.remove(following)
    return order


def _connected(predicates: PredicateSet, slot: int, joined_slots: Collection[int]) -> bool:
    return any(
        slot in predicate.slots and predicate.slots <= {slot, *joined_slots}
        for predicate in predicates.predicates
        if len(predicate.slots) > 1
    )


def worth_uniting(fractions: Sequence[float], test: float | None = None) -> list[int]:
    """Which of several selections should join as one, by the fraction of all joined entries that each has: those that have
    so much that one join and a test for each cost less than a join for each. None, if none do. `test` is what a test costs, if it is not TEST.

    >>> worth_uniting([0.9, 0.8, 0.01])
    [0, 1]
    >>> worth_uniting([0.1, 0.1, 0.1])
    []
    """
    test = TEST if test is None else test
    large = [place for place, fraction in enumerate(fractions) if fraction > test]
    saved = sum(fractions[place] - test for place in large)
    return large if len(large) > 1 and saved > 1 else []
