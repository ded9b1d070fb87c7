"""Which rows of its streams a query over a derived stream has not seen: all up to an event time.

A query has seen the rows of the streams' steps that were published for it while it was a member of a join of
the network's plan. For every stream the latest event time of all other rows is kept in the network's commits:
no row with a later time is missing. It is known from the streams' commits, which have the latest event
time of all their rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.algebra.network.plan import NetworkPlan
from weft.runtime.checkpoint.commits import Edition
from weft.runtime.network.publication import serves

UNSEEN, EVENTS = "unseen", "events"
"""The parts of the network's section of a commit."""


@dataclass
class Unseen:
    """The latest event times of all rows by stream, and of those that a query has not seen."""

    relations: Mapping[str, Sequence[str]]
    """By member of a published join: the streams and tables that the join reads."""
    events: dict[str, int] = field(default_factory=dict)
    times: dict[str, dict[str, int]] = field(default_factory=dict)

    @staticmethod
    def of(plan: NetworkPlan, section: Mapping[str, Any], consumed: Mapping[str, int]) -> Unseen:
        """Before a step with a plan. `section` is that of the last commit. `consumed`: times of streams
        that were consumed before commits had them."""
        events = {**consumed, **section.get(EVENTS, {})}
        before = section.get(UNSEEN, {})
        unseen = Unseen(members_of(plan), events)
        for member, relations in unseen.relations.items():
            if member in before:
                unseen.times[member] = dict(before[member])
            else:
                unseen.times[member] = {name: events[name] for name in relations if name in events}
        return unseen

    def add(self, relation: str, edition: Edition | None, max_event: int | None) -> None:
        """A step of a stream with rows: for whom it was published, and the latest event time of the stream
        up to it."""
        if max_event is None:
            return
        self.events[relation] = max_event
        for member, relations in self.relations.items():
            missed = edition is None or not serves(edition, member)
            if missed and relation in relations:
                self.times[member][relation] = max_event

    def of_members(self, plan: NetworkPlan) -> Unseen:
        """After a step with a plan, which may have lost members meanwhile."""
        kept = members_of(plan)
        times = {member: times for member, times in self.times.items() if member in kept}
        return Unseen(kept, self.events, times)

    def section(self, plan: NetworkPlan) -> dict[str, Any]:
        """For the commit of a step with a plan."""
        return {EVENTS: dict(self.events), UNSEEN: self.of_members(plan).times}


def members_of(plan: NetworkPlan) -> dict[str, Sequence[str]]:
    """The queries over derived streams, each with the streams and tables of its join."""
    return {
        member: query.relations
        for query in plan.queries
        if query.members
        for member in query.members
    }
