"""Published joins for tests: queries over the rows of a spec's join, without windows that matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.support.network_steps import FIELDS, STREAMS, Spec

from weft.algebra.network.derived import DerivedQuery, DerivedStream, published_join
from weft.algebra.network.query import JoinQuery
from weft.algebra.query import Field
from weft.algebra.window import Window


def over(
    spec: Spec, query_id: str, shown: Sequence[tuple[int, str]], slot: int = 0
) -> DerivedQuery:
    """A query over the join of a spec that reads these columns."""
    join = spec.query()
    times = tuple("ts" if name in STREAMS else "" for name in spec.relations)
    stream = DerivedStream(join.inputs, join.predicates, times, slot)
    read = [*shown, (slot, "ts")]
    fields = {
        Field(stream.column(f"{place}.{name}"), FIELDS[spec.relations[place]][name])
        for place, name in read
    }
    return DerivedQuery(
        query_id,
        query_id,
        "",
        stream.name,
        Window(10, 10),
        (),
        None,
        (),
        None,
        (),
        derived=stream,
        fields=tuple(sorted(fields, key=lambda field: field.name)),
    )


@dataclass(frozen=True)
class Published:
    """A join that is published for some queries, as `EngineRun` takes queries."""

    queries: tuple[DerivedQuery, ...]

    def query(self) -> JoinQuery:
        return published_join(self.queries)
