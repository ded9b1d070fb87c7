"""EXPLAIN: the shared plan as text, JSON and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.algebra.plan import SharedPlan


@dataclass(frozen=True)
class FallbackNote:
    """A query that runs alone, and why."""

    query: str
    stream: str
    reason: str


@dataclass(frozen=True)
class Explanation:
    plans: tuple[SharedPlan, ...]
    fallbacks: tuple[FallbackNote, ...]
    only: str | None = None

    def __str__(self) -> str:
        return "\n".join(f"{p.stream.name}: {len(p.queries)} queries" for p in self.plans)

    def _repr_html_(self) -> str:
        return f"<pre>{self}</pre>"


def explain(
    plans: Sequence[SharedPlan], fallbacks: Sequence[FallbackNote], only: str | None = None
) -> Explanation:
    return Explanation(tuple(plans), tuple(fallbacks), only)
