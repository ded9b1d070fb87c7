"""Which rows a query sees: those of the steps whose edition includes it, from then on.

The engine remembers by relation at which step the edition changed. A query's first step is the first one
from which on every edition includes it. Changes before the oldest row in history no longer matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.runtime.checkpoint.commits import Edition
from weft.runtime.network.publication import serves

Changes = tuple[tuple[int, Edition], ...]
"""The steps of a stream at which its edition changed, oldest first."""


def noted(changes: Changes, steps: Iterable[tuple[int, Edition]]) -> Changes:
    """The changes after more steps.

    >>> noted((), [(0, Edition(3)), (1, Edition(3)), (2, Edition(4))])
    ((0, Edition(last=3, without=(), names=())), (2, Edition(last=4, without=(), names=())))
    """
    result = list(changes)
    for sequence, edition in steps:
        if not result or result[-1][1] != edition:
            result.append((sequence, edition))
    return tuple(result)


def first_step(changes: Changes, query_id: str) -> int | None:
    """The first step whose rows a query sees; None if there is none yet.

    >>> first_step(((0, Edition(3)), (2, Edition(4))), "q@4")
    2
    """
    first: int | None = None
    for sequence, edition in reversed(changes):
        if not serves(edition, query_id):
            break
        first = sequence
    return first


def forgotten(changes: Changes, oldest: int) -> Changes:
    """Without the changes that only concern rows older than a step."""
    before = [change for change in changes if change[0] <= oldest]
    return (*before[-1:], *(change for change in changes if change[0] > oldest))


def encoded(changes: Mapping[str, Changes]) -> dict[str, list[Any]]:
    """The JSON form, for a commit."""
    return {
        relation: [
            [sequence, edition.last, list(edition.without), list(edition.names)]
            for sequence, edition in steps
        ]
        for relation, steps in changes.items()
    }


def decoded(body: Mapping[str, Sequence[Sequence[Any]]]) -> dict[str, Changes]:
    """Earlier versions of weft wrote no names."""
    return {
        relation: tuple((step[0], Edition(step[1], *map(tuple, step[2:]))) for step in steps)
        for relation, steps in body.items()
    }
