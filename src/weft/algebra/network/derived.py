"""A derived stream: the rows of a join of streams, over which windowed aggregates run.

The name is a digest of what the join is: its inputs, its conditions and the input whose event time the
windows are over. So queries that differ only in what they aggregate have the same derived stream. Its columns
are those that its queries read of the join, called `relation.column`; of a second input of the same relation
`relation#2.column`.

Time. Let t_s be the event time that the windows are over, and t_o that of another stream of the join. The
network admits a row only if its event time is above the watermark W of the step before. A new row of the join
has a row that is newly admitted, so t_s > W or some t_o > W. With t_o - t_s <= c_o follows t_s > W - delay,
where `delay` is the largest of 0 and all c_o. So no row of a derived stream is ever late for the
watermark W - delay, and windows that end there are complete.

Without a bound c_o no window could ever close. Without a bound on t_s - t_o (`reach`) a row from before a
query's registration could match for ever, and no window could be called complete. `unbounded` says which
condition is missing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, permutations, product
from math import factorial, prod
from typing import Final

from weft.algebra import codec
from weft.algebra.network.query import JoinInput, JoinQuery
from weft.algebra.predicates import PredicateSet
from weft.algebra.predicates.slots import column_name, plain_name, slot_of
from weft.algebra.predicates.time_bounds import time_bounds
from weft.algebra.query import Field, OutputColumn, Query, StreamSchema
from weft.algebra.scalar import Ref

_PREFIX: Final = "@join-"
"""No name that users give has an @."""
_MOST_ORDERS: Final = 720
"""In how many orders the inputs of a self-join are looked at to find the canonical one."""


@dataclass(frozen=True)
class DerivedStream:
    """The rows of a join, with the event time of one of its inputs."""

    inputs: tuple[JoinInput, ...]
    predicates: PredicateSet
    times: tuple[str, ...]
    """For each input the column of its event time; empty for tables."""
    slot: int
    """The input whose event time the windows are over."""

    @cached_property
    def name(self) -> str:
        sources = [entry.source for entry in self.inputs]
        return _PREFIX + codec.digest((sources, self.predicates, self.times, self.slot), 16)

    @cached_property
    def _labels(self) -> tuple[str, ...]:
        """What the names of each input's columns begin with, up to the first dot."""
        relations = [entry.relation.replace(".", "_") for entry in self.inputs]
        before = [relations[:slot].count(name) for slot, name in enumerate(relations)]
        return tuple(f"{name}#{n + 1}" if n else name for name, n in zip(relations, before))

    def column(self, name: str) -> str:
        """The stream's name for a column of the join, `slot.column`."""
        return f"{self._labels[slot_of(name)]}.{plain_name(name)}"

    def _of_join(self, column: str) -> str:
        """The join's name for a column of the stream."""
        label, name = column.split(".", 1)
        return column_name(self._labels.index(label), name)

    @cached_property
    def time(self) -> str:
        return self.column(column_name(self.slot, self.times[self.slot]))

    @cached_property
    def _bounds(self) -> Mapping[tuple[int, int], int]:
        columns = {slot: time for slot, time in enumerate(self.times) if time}
        if self.predicates.never:
            return dict.fromkeys(permutations(columns, 2), 0)
        return time_bounds(self.predicates, columns)

    @property
    def _others(self) -> list[int]:
        """The other inputs that are streams."""
        return [slot for slot, time in enumerate(self.times) if time and slot != self.slot]

    @cached_property
    def delay(self) -> int:
        """How far its watermark is behind the network's, in microseconds."""
        return max(0, *(self._bounds[self.slot, other] for other in self._others))

    @cached_property
    def reach(self) -> tuple[tuple[str, int], ...]:
        """By stream, how much later than one of its rows a row of the join can be."""
        reach = {self.inputs[self.slot].relation: 0}
        for other in self._others:
            relation, bound = self.inputs[other].relation, self._bounds[other, self.slot]
            reach[relation] = max(bound, reach.get(relation, bound))
        return tuple(sorted(reach.items()))

    @property
    def unbounded(self) -> str | None:
        """The condition that would bound event times, if one is missing."""
        for other in self._others:
            for earlier, later in ((self.slot, other), (other, self.slot)):
                if (earlier, later) not in self._bounds:
                    return f"{self._called(later)} <= {self._called(earlier)} + INTERVAL 1 HOUR"
        return None

    def _called(self, slot: int) -> str:
        return f"{self.inputs[slot].alias}.{self.times[slot]}"

    @property
    def described(self) -> str:
        """What it is, for people."""
        names = (
            entry.relation if entry.alias == entry.relation else f"{entry.relation} {entry.alias}"
            for entry in self.inputs
        )
        return f"the join of {', '.join(names)}"

    def complete_from(self, unseen: Mapping[str, int]) -> int | None:
        """The event time from which on it has all rows for a query that has not seen the rows of some
        streams up to these times; None: it has all."""
        ends = [unseen[name] + bound + 1 for name, bound in self.reach if name in unseen]
        return max(ends, default=None)

    def join(self, query_id: str, name: str, fields: Collection[Field]) -> JoinQuery:
        """The join as a query of the network that gives these columns."""
        columns = tuple(
            OutputColumn(read.name, read.type, Ref(self._of_join(read.name), read.type))
            for read in fields
        )
        return JoinQuery(query_id, name, "", self.inputs, self.predicates, columns)


@dataclass(frozen=True, slots=True)
class DerivedQuery(Query):
    """A windowed aggregate over a derived stream."""

    derived: DerivedStream = field(kw_only=True)
    fields: tuple[Field, ...] = field(kw_only=True)
    """The columns that it reads of the join, and the event time."""

    @property
    def join(self) -> JoinQuery:
        """What it needs of the network."""
        return self.derived.join(self.id, self.name, self.fields)


def is_derived(stream: str) -> bool:
    """Whether a stream's name is that of a derived stream."""
    return stream.startswith(_PREFIX)


def schema_of(queries: Sequence[DerivedQuery]) -> StreamSchema:
    """A derived stream as its queries see it together."""
    stream = queries[0].derived
    return StreamSchema(stream.name, _fields_of(queries), stream.time, stream.delay)


def published_join(queries: Sequence[DerivedQuery]) -> JoinQuery:
    """The join whose rows are published for some queries over a derived stream. It sees what the oldest of
    them sees. Its id changes with the queries and the columns that they need."""
    stream, fields = queries[0].derived, _fields_of(queries)
    members = tuple(sorted((query.id for query in queries), key=_registration))
    digest = codec.digest((members, fields))
    query_id = f"{stream.name}.{digest}@{_registration(members[0])}"
    return replace(stream.join(query_id, stream.name, fields), members=members)


def canonical_order(
    inputs: Sequence[JoinInput], predicates: PredicateSet, slot: int
) -> dict[int, int]:
    """For each slot its place in an order that does not depend on how a query writes its FROM: by relation,
    and for several inputs of one relation such that the conditions read first in the alphabet. Joins of
    very many inputs of one relation keep their order."""
    groups: dict[str, list[int]] = {}
    for number, entry in enumerate(inputs):
        groups.setdefault(entry.source, []).append(number)
    members = [groups[source] for source in sorted(groups)]
    if prod(factorial(len(group)) for group in members) > _MOST_ORDERS:
        return {number: number for number in range(len(inputs))}
    orders = (
        {number: place for place, number in enumerate(chain.from_iterable(choice))}
        for choice in product(*(permutations(group) for group in members))
    )
    return min(orders, key=lambda order: (predicates.moved(order).sql, order[slot]))


def _fields_of(queries: Sequence[DerivedQuery]) -> tuple[Field, ...]:
    fields = {read.name: read for query in queries for read in query.fields}
    return tuple(fields[name] for name in sorted(fields))


def _registration(query_id: str) -> int:
    return int(query_id.rsplit("@", 1)[1])
