"""How far the network's matches go: what a follower of it knows after the steps that it has consumed.

Matches are complete for an instant if the network has seen all rows of the windows that are on time: those that it was not published, those that it
did not admit (`weft.runtime.network.passed`), and those whose matches were published while the aggregation join did not run end before the
windows begin. An instant is due when the network has consumed its streams up to it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from weft.algebra.frozen import FrozenMapping
from weft.algebra.joinagg.matches import PASSED, matches_id
from weft.algebra.joinagg.query import AggregationJoin
from weft.kernel.joinagg.instants import first_complete
from weft.runtime.planning.versions import ALWAYS

_NOTHING: Mapping[str, Any] = dict.fromkeys(
    ("watermarks", "missed", "events", "unseen", "lost"), FrozenMapping()
)
Times = Mapping[str, int]
"""Event times by stream."""


@dataclass(frozen=True)
class NetworkPassed:
    """What the network's commits say, up to the last one that is consumed."""

    watermarks: Times
    missed: Times
    events: Times
    """The latest event times of all rows."""
    unseen: Mapping[str, Times]
    """By query for matches (`matches_id`) that the network runs: the latest event times of rows that it has not seen."""
    lost: Mapping[str, Times]
    """By query: those of rows whose matches came while the aggregation join did not run, or not with these inputs."""

    @staticmethod
    def nothing() -> NetworkPassed:
        """Before the first step."""
        return NetworkPassed(**_NOTHING)

    @staticmethod
    def decoded(section: Mapping[str, Any] | None) -> NetworkPassed:
        return NetworkPassed(**{**_NOTHING, **(section or {})})

    def encoded(self) -> dict[str, Any]:
        """The JSON form, for a commit."""
        return {
            "watermarks": dict(self.watermarks),
            "missed": dict(self.missed),
            "events": dict(self.events),
            "unseen": {name: dict(times) for name, times in self.unseen.items()},
            "lost": {name: dict(times) for name, times in self.lost.items()},
        }

    def resumed(self, names: Collection[str]) -> NetworkPassed:
        """Before a step: matches are read that were not in the step before."""
        lost = {name: self.events for name in names if name in self.unseen}
        return replace(self, lost={**self.lost, **lost}) if lost else self

    def after(self, step: Mapping[str, Any]) -> NetworkPassed:
        """After one more step of the network, as its commit has it."""
        passed = step["engine"].get(PASSED, {})
        unseen = passed.get("unseen", {})
        lost = {name: times for name, times in self.lost.items() if name in unseen}
        return NetworkPassed(**{**_NOTHING, **passed, "lost": lost})

    def complete_from(self, query: AggregationJoin, slots: Sequence[int]) -> int | None:
        """The first instant for which matches are complete; None if the network does not find them yet."""
        name = matches_id(query.id, slots)
        if name not in self.unseen:
            return None
        begins = [ALWAYS] * len(query.inputs)
        for slot in slots:
            relation = query.inputs[slot].relation
            times = (self.unseen[name], self.missed, self.lost.get(name, {}))
            begins[slot] = max(of[relation] + 1 if relation in of else ALWAYS for of in times)
        return first_complete(query, begins)

    def reached(self, query: AggregationJoin, slots: Sequence[int]) -> int:
        """Up to which time matches have come in."""
        return min(self.watermarks.get(query.inputs[slot].relation, 0) for slot in slots)
