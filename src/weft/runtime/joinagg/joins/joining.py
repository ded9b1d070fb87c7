"""Which aggregation joins of a step join together, and over which entries.

Queries join together if their inputs have the same windows of the same panes, rows or tables, and the same equality keys (`kernel/joinagg/together`). Those
with equal selections always do. Those with different ones do if their selections have so much in common that joining once what any of them selects
costs less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.sources import LATE
from weft.algebra.predicates import LiteralPredicate
from weft.kernel.joinagg.entries import Entries
from weft.kernel.joinagg.panes import Panes
from weft.kernel.joinagg.together import keys_of, truth, worth_uniting
from weft.runtime.joinagg.inputs import Use
from weft.runtime.joinagg.served import Key

Selections = tuple[str | None, ...]
"""By input, the attribute of shared rows that says which are the query's."""


@dataclass(frozen=True)
class Ready:
    """A query to be evaluated: how its inputs are used, from when on all of each is there, and the first instant that it
    may show."""

    query: AggregationJoin
    early: tuple[bool, ...]
    uses: tuple[Use | None, ...]
    begins: tuple[int, ...]
    first: int
    matched: tuple[int, ...] = ()
    """The inputs that the network has joined."""

    @property
    def selections(self) -> Selections:
        return tuple(None if use is None else use.selection for use in self.uses)

    @cached_property
    def contents(self) -> tuple[object, ...]:
        """What must be equal for queries to join together."""
        inputs = [
            (entry.relation, entry.attributes, entry.predicate, early)
            if use is None
            else (use.key, use.window, begin)
            for entry, early, use, begin in zip(
                self.query.inputs, self.early, self.uses, self.begins, strict=True
            )
        ]
        alone = self.query.id if self.matched else None
        return (self.query.step, _keys(_ByPredicates(self.query)), alone, *inputs)


class _ByPredicates:
    """A query, compared by its conditions and the number of its inputs."""

    def __init__(self, query: AggregationJoin) -> None:
        self.query = query
        self._compared = (query.predicates, len(query.inputs))
        self._hash = hash(self._compared)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ByPredicates) and self._compared == other._compared


@lru_cache(maxsize=4096)
def _keys(query: _ByPredicates) -> frozenset[LiteralPredicate]:
    return keys_of(query.query)


@dataclass(frozen=True)
class Kept:
    """What is kept for inputs, as the step sees it."""

    panes: Mapping[Key, Panes]

    def rows(self, use: Use, begin: int) -> Panes:
        """What an input shares with others, from a time on."""
        return self.panes[use.key].since(begin)

    def part(self, slot: int) -> int | None:
        """Inputs have all entries."""
        return None

    def of(self, uses: Sequence[Use], begin: int) -> Entries:
        """The entries of inputs that share what is kept, with what any of them needs."""
        panes, first = self.rows(uses[0], begin), uses[0]
        if not first.early:
            panes = narrowed(panes, uses)
        return panes.entries(first.window, first.query.step)

    def marked(self, use: Use, begin: int) -> Entries:
        """The rows of one late input, with the mark of late ones."""
        panes = narrowed(self.rows(use, begin), [use], [LATE])
        return panes.entries(use.window, use.query.step)

    def has_late(self, use: Use) -> bool | None:
        """Whether any row that is kept for a late input came late; None: it is not known of all of them."""
        flags = self.panes[use.key].kept.columns[LATE]
        if flags.valid is not None and not flags.valid.all():
            return None
        return bool(truth(flags).any())


def narrowed(panes: Panes, uses: Sequence[Use], marks: Sequence[str] = ()) -> Panes:
    """The rows that any of several inputs selects, with the attributes and partials of these, and some marks."""
    selections = {use.selection for use in uses}
    if None not in selections:
        chosen = np.zeros(len(panes), bool)
        for name in selections:
            assert name is not None
            chosen |= truth(panes.kept.columns[name])
        if not chosen.all():
            panes = replace(panes, kept=panes.kept.take(np.flatnonzero(chosen)))
    names = {attribute.name for use in uses for attribute in use.source.attributes} | {*marks}
    if len(selections) > 1:
        names |= {name for name in selections if name is not None}
    partials = {p.name for use in uses for p in use.source.partials(use.stream)}
    kept = panes.kept
    columns = {name: values for name, values in kept.columns.items() if name in names}
    stored = {name: values for name, values in kept.partials.items() if name in partials}
    return replace(panes, kept=replace(kept, columns=columns, partials=stored))


def joined_together(ready: Sequence[Ready], kept: Kept | None) -> list[list[Ready]]:
    """The queries in groups that join together. Without what is kept, only those with equal selections do."""
    alike: dict[tuple[object, ...], dict[Selections, list[Ready]]] = {}
    for one in ready:
        alike.setdefault(one.contents, {}).setdefault(one.selections, []).append(one)
    groups: list[list[Ready]] = []
    for classes in alike.values():
        members = list(classes.values())
        chosen = worth_uniting(_fractions(members, kept)) if kept and len(members) > 1 else []
        groups += [of_class for place, of_class in enumerate(members) if place not in chosen]
        if chosen:
            groups.append([one for place in chosen for one in members[place]])
    return groups


def _fractions(classes: Sequence[Sequence[Ready]], kept: Kept) -> list[float]:
    """Of each class of equal selections: which part of the joined entries of all it has, about."""
    leads = [members[0] for members in classes]
    parts: list[list[float]] = [[] for _ in leads]
    for slot, use in enumerate(leads[0].uses):
        if use is None or use.early:
            continue
        panes = kept.rows(use, leads[0].begins[slot])
        names = [lead.selections[slot] for lead in leads]
        true = {name: truth(panes.kept.columns[name]) for name in set(names) if name is not None}
        total = len(panes) if None in names else int(np.logical_or.reduce([*true.values()]).sum())
        for part, name in zip(parts, names, strict=True):
            if name is not None and total:
                part.append(int(true[name].sum()) / total)
    return [math.prod(part) for part in parts]
