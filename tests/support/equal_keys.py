"""Joins of streams `a` and `b` on one key, and rows for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pyarrow as pa
from tests.support.network_steps import SECOND, Spec, difference, table


def same_key(id_: str, *, within: int | None = None) -> Spec:
    """Pairs of `a` and `b` with equal k, within some seconds of each other."""
    relations = ("a", "b")
    conditions = [difference(relations, (0, "k"), (1, "k"), 0, 0)]
    if within is not None:
        span = within * SECOND
        conditions.append(difference(relations, (0, "ts"), (1, "ts"), -span, span))
    return Spec(id_, relations, tuple(conditions), ((0, "g"), (1, "g")))


def rows(relation: str, keys: Sequence[int], second: int) -> pa.Table:
    time = {"ts": datetime.fromtimestamp(second, UTC), "#time": second * SECOND}
    return table(relation, [{"k": key, "g": n, **time} for n, key in enumerate(keys)])
