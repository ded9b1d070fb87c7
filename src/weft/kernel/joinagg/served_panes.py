"""The panes of several sources, made of the published set that serves them (`algebra/joinagg/serving`).

The entries of a selection are those whose signature has its bit. Of these, first the finest set that any of its sources needs is made, then the
others of that one: an entry of the published set is looked at once for each selection, and one of a selection's finest set once for each other set.
Sources with equal attributes share the adding up.

Time: O(n) for n published entries and each selection, and O(m log m) to add up m entries.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from weft.algebra.joinagg.sources import SIGNATURE, Source
from weft.algebra.partial import Partial
from weft.algebra.query import StreamSchema
from weft.algebra.scalar import Expression
from weft.kernel.columns.operations import Array
from weft.kernel.joinagg.entries import Entries
from weft.kernel.joinagg.panes import Panes


def selected(signatures: Array, provider: Source, predicate: Expression | None) -> Array:
    """By entry of a set, whether it is of a selection."""
    if predicate is None or predicate not in provider.selections:
        return np.ones(len(signatures), bool)
    chosen: Array = (signatures >> provider.selections.index(predicate) & 1).astype(bool)
    return chosen


def served_panes(
    panes: Panes, provider: Source, sources: Sequence[Source], stream: StreamSchema
) -> Iterator[tuple[Source, Panes]]:
    """The panes of each of the sources, which a published set serves."""
    by_selection: dict[Expression | None, list[Source]] = {}
    for source in sources:
        if source == provider:
            yield source, panes
        else:
            by_selection.setdefault(source.predicate, []).append(source)
    for predicate, of_selection in by_selection.items():
        for source, kept in _of_selection(panes.kept, provider, predicate, of_selection, stream):
            yield source, replace(panes, kept=kept)


def _of_selection(
    kept: Entries,
    provider: Source,
    predicate: Expression | None,
    sources: Sequence[Source],
    stream: StreamSchema,
) -> Iterator[tuple[Source, Entries]]:
    """The entries of sources of one selection."""
    positions = None
    if predicate in provider.selections:
        signatures = kept.columns[SIGNATURE].values
        positions = np.flatnonzero(selected(signatures, provider, predicate))
    alike: dict[frozenset[str], list[Source]] = {}
    for source in sources:
        alike.setdefault(frozenset(a.name for a in source.attributes), []).append(source)
    finest = sorted(frozenset().union(*alike))
    entries = kept.combined(_partials(sources, stream), finest, positions)
    for names, having_them in alike.items():
        partials = _partials(having_them, stream)
        same = names == frozenset(finest)
        of_names = entries if same else entries.combined(partials, sorted(names))
        for source in having_them:
            attributes = [a.name for a in source.attributes]
            yield source, of_names.only(attributes, source.partials(stream))


def _partials(sources: Sequence[Source], stream: StreamSchema) -> list[Partial]:
    """The partials of all of them, each once."""
    return list({p.name: p for source in sources for p in source.partials(stream)}.values())
