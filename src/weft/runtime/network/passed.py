"""How far the network has come in each of its streams, for those who follow what it publishes.

A stream's watermark after the last step that the network has consumed says up to which time all rows have come in. But the network admits a row only
above its own watermark, the least of its streams. That may be ahead of a stream that joined it later, or that no join query reads: rows of such a stream that are on time for
the stream are late for the network. The latest time of which that may be so is noted by stream.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.algebra.joinagg.matches import PASSED, is_matches
from weft.runtime.network.unseen import Unseen


@dataclass
class Passed:
    """By stream: its watermark after what is consumed, and the time up to which rows that it took for timely were not admitted."""

    watermarks: dict[str, int] = field(default_factory=dict)
    missed: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def of(section: Mapping[str, Any]) -> Passed:
        before = section.get(PASSED, {})
        return Passed(dict(before.get("watermarks", {})), dict(before.get("missed", {})))

    def add(self, relation: str, watermark: int, admitted_above: int) -> None:
        """A step of a stream with its watermark after it, of which joins admit the rows above a time."""
        if admitted_above > self.watermarks.get(relation, 0):
            self.missed[relation] = admitted_above
        self.watermarks[relation] = watermark

    def section(self, unseen: Unseen) -> dict[str, Any]:
        """For the commit of a step, with what queries for matches have not seen."""
        passed: dict[str, Any] = {"watermarks": dict(self.watermarks), "missed": dict(self.missed)}
        of_matches = {name: times for name, times in unseen.times.items() if is_matches(name)}
        if of_matches:
            passed |= {"events": dict(unseen.events), "unseen": of_matches}
        return {PASSED: passed}
