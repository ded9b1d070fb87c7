"""From when on the streams have published what aggregation joins read of them.

A stream's commit says which panes and which late rows its step has served. The follower remembers by source the event time from
which on it has all of it: for panes the stream's plan says so; of rows those of earlier steps are missing, so it is after the latest of
these. What a stream stops serving is forgotten, and begins anew if it is served again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from weft.runtime.checkpoint.commits import editions
from weft.runtime.joinagg.publication import LATE_ROWS
from weft.runtime.planning.versions import ALWAYS

Kind = Literal["panes", "rows"]
Key = tuple[Kind, str]
"""A source as it is published: aggregated or row by row; and its id."""


@dataclass
class StreamServed:
    """What one stream has published, after the steps consumed so far."""

    sequence: int = -1
    latest: int | None = None
    """The latest event time of all its rows."""
    watermark: int = 0
    begins: dict[Key, int] = field(default_factory=dict)

    def take(self, step: Mapping[str, Any], served_by: Mapping[str, str]) -> None:
        """One more step of the stream, as its commit has it. `served_by` has the finer sets that serve others, by the
        source that they serve: it counts from the first step that it was used in."""
        sets: Mapping[str, int] = step["engine"].get("sets", {})
        served: dict[Key, int] = {
            ("panes", name): max(begin, self.begins.get(("panes", name), ALWAYS))
            for name, begin in sets.items()
        }
        for name, finer in served_by.items():
            if name not in sets and finer in sets:
                begin = self.begins.get(("panes", name), self._after_earlier(step))
                served["panes", name] = max(sets[finer], begin)
        edition = editions(step).get(LATE_ROWS)
        if edition is not None:
            for name in edition.names:
                begin = self._after_earlier(step)
                served["rows", name] = self.begins.get(("rows", name), begin)
        elif step["kind"] == "flush":
            rows = {key: begin for key, begin in self.begins.items() if key[0] == "rows"}
            served |= rows
        self.begins = served
        self.sequence, self.latest = step["sequence"], step["max_event_time"]
        self.watermark = step["watermark"]

    def used(self, keys: Collection[Key]) -> StreamServed:
        """After a step in which only these sources were used: of all others nothing is kept that has come so far."""
        if self.latest is None:
            return self
        begins = {
            key: begin if key in keys else max(begin, self.latest + 1)
            for key, begin in self.begins.items()
        }
        return replace(self, begins=begins)

    def _after_earlier(self, step: Mapping[str, Any]) -> int:
        """A time after all rows of the steps before."""
        before = self._latest_before(step)
        return ALWAYS if before is None else before + 1

    def _latest_before(self, step: Mapping[str, Any]) -> int | None:
        """The latest event time before a step. If steps are missing, that of the step itself is late enough."""
        if step["previous"] is None:
            return None
        if step["sequence"] == self.sequence + 1:
            return self.latest
        latest: int | None = step["max_event_time"]
        return latest

    def encoded(self) -> dict[str, Any]:
        """The JSON form, for a commit."""
        return {
            "sequence": self.sequence,
            "latest": self.latest,
            "watermark": self.watermark,
            "begins": [[kind, name, begin] for (kind, name), begin in self.begins.items()],
        }

    @staticmethod
    def decoded(body: Mapping[str, Any]) -> StreamServed:
        begins = {(kind, name): begin for kind, name, begin in body["begins"]}
        return StreamServed(body["sequence"], body["latest"], body["watermark"], begins)
