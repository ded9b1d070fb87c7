"""Streams that a row must have a match in, or none: EXISTS, IN, LEFT SEMI and ANTI JOIN, INTERSECT, EXCEPT.

A subquery over tables alone is a truth value of its row (`lookups`). Over streams the value may change as long
as rows come, so it may only be asked where the result stays an append:

- *semi-join*: the query wants rows with a match. A row is shown at its first match, and never taken back.
- *anti-join*: the query wants rows without a match. A row is shown when it is *closed*: no row that could
  match is still to come, because the conditions bound the event times of matches from above.

So the condition must stand alone in WHERE, or with NOT before it. Refused (`NEVER_CLOSED`): an anti-join
without such a bound. Declines: the condition below OR, several such conditions in one query, one inside
of another, and semi-joins whose matches depend on tables, which may change after a row was shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from weft.algebra.condition.values import Bound, Values
from weft.algebra.network.lookup import FOUND, split_prefix
from weft.algebra.network.query import JoinInput, Partner, PartnerKind
from weft.algebra.predicates import PredicateSet
from weft.algebra.predicates.slots import column_name
from weft.algebra.predicates.time_bounds import time_bounds
from weft.algebra.predicates.transitivity import inferred
from weft.algebra.scalar import Ref
from weft.sql.fallback import Unshared
from weft.sql.joins.bound import BoundBlock, BoundOptional
from weft.sql.scopes.sources import Sources

_TRUE: Final = Values(((Bound(1), None),))
_FALSE: Final = Values(((None, Bound(1)),))


@dataclass(frozen=True)
class Asked:
    """What a block asks of streams."""

    kind: PartnerKind
    block: BoundBlock
    """The streams, with what must hold of their rows, also together with a row of the query."""
    words: str
    at: int


def asked(sources: Sources, block: BoundBlock) -> tuple[BoundBlock, Asked | None]:
    """What is left of a query's outermost block without what it asks of streams; and this, if it asks for
    anything. A query that no row can pass need not ask."""
    several = [one for one in block.optional if sources.reads_stream(one.block.slots)]
    for one in (inner for outer in block.optional for inner in _inside(outer)):
        if sources.reads_stream(one.block.slots):
            reason = f"{one.words} over a stream inside of another has no shared form"
            raise Unshared(reason, one.at)
    if not several:
        return block, None
    first, *others = several
    if others:
        reason = f"{others[0].words} over a stream beside {first.words} has no shared form"
        raise Unshared(reason, others[0].at)
    optional = tuple(one for one in block.optional if one is not first)
    if block.predicates.never:
        return BoundBlock(block.members, block.predicates, optional), None
    kind, predicates = _kind(block.predicates, first)
    inside = first.block
    if kind == "anti-join" and first.not_false is not None:
        inside = BoundBlock(inside.members, first.not_false, inside.optional)
    for one in inside.optional:
        if not one.read <= inside.slots:
            reason = f"{one.words} that reads rows outside of {first.words} has no shared form"
            raise Unshared(reason, one.at)
    is_subquery = kind == "anti-join" and "(" in first.words
    words = f"NOT {first.words}" if is_subquery else first.words
    rest = BoundBlock(block.members, predicates, optional)
    return rest, Asked(kind, inside, words, first.at)


def _inside(one: BoundOptional) -> Iterator[BoundOptional]:
    for inner in one.block.optional:
        yield inner
        yield from _inside(inner)


def _kind(predicates: PredicateSet, one: BoundOptional) -> tuple[PartnerKind, PredicateSet]:
    """Whether a match is wanted, or none; and the conditions without this one."""
    name = column_name(min(one.block.slots), FOUND)
    about = [predicate for predicate in predicates.predicates if name in predicate.names]
    rest = tuple(predicate for predicate in predicates.predicates if predicate not in about)
    if len(about) == 1 and len(about[0].literals) == 1:
        (literal,) = about[0].literals
        if isinstance(literal.subject, Ref) and literal.values in (_TRUE, _FALSE):
            kind: PartnerKind = "semi-join" if literal.values == _TRUE else "anti-join"
            return kind, PredicateSet(rest)
    raise Unshared(
        f"{one.words} over a stream below other conditions has no shared form",
        one.at,
        "as a condition of its own, or with NOT before it, it is shared",
    )


def partner(
    sources: Sources,
    question: Asked,
    outer: tuple[JoinInput, ...],
    inner: tuple[JoinInput, ...],
    predicates: PredicateSet,
    conditions: PredicateSet,
) -> Partner | None:
    """The partner of a query. `predicates` are those of the query, `conditions` those of its partner: alone,
    and with the query's rows. None: no row can ever match."""
    first = len(outer)
    slots = range(first, first + len(inner))
    known = inferred(predicates & conditions, first + len(inner))
    if known.never:
        return None
    alone = known.within(slots)
    matching = PredicateSet(
        tuple(predicate for predicate in conditions.predicates if not predicate.slots <= set(slots))
    )
    if question.kind == "anti-join":
        _check_closed(sources, question, (*outer, *inner), first, known)
    elif _reads_tables(sources, inner, matching):
        raise Unshared(
            f"{question.words} over a stream beside a table has no shared form", question.at
        )
    return Partner(
        question.kind, inner, alone.moved({slot: slot - first for slot in slots}), matching
    )


def _reads_tables(sources: Sources, inner: tuple[JoinInput, ...], matching: PredicateSet) -> bool:
    """Whether it depends on the contents of a table if there is a match."""
    inside = any(
        entry.lookups or sources.inputs.find_stream(entry.relation) is None for entry in inner
    )
    return inside or any(split_prefix(name)[0] for name in matching.names)


def _check_closed(
    sources: Sources,
    question: Asked,
    inputs: tuple[JoinInput, ...],
    first: int,
    known: PredicateSet,
) -> None:
    """Raises if a row of the partner could match a row of any earlier time."""
    streams = {
        slot: sources.inputs.find_stream(entry.relation) for slot, entry in enumerate(inputs)
    }
    times = {slot: stream.time for slot, stream in streams.items() if stream is not None}
    bounds = time_bounds(known, times)
    outer = [slot for slot in times if slot < first]
    for slot in times:
        if slot >= first and not any((other, slot) in bounds for other in outer):
            later, earlier = (f"{inputs[one].alias}.{times[one]}" for one in (slot, outer[0]))
            raise sources.source.error(
                "NEVER_CLOSED",
                question.at,
                words=question.words,
                alias=inputs[slot].alias,
                advice=_advice(question, later, earlier),
            )


def _advice(question: Asked, later: str, earlier: str) -> str:
    if question.words == "EXCEPT":
        return f"show the event times, {earlier} and {later}, in the same column of both sides"
    return (
        f"add a condition such as {later} <= {earlier} + INTERVAL 1 HOUR "
        "(a bound in days counts only where all days are equally long)"
    )
