"""An engine that prepares what another one computes: it passes on all that it does not do itself.

Row windows and derived streams read published files and let an engine of windows run on the rows. What they do not change is here, once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic

from weft.runtime.checkpoint.commits import Commit, Intent, Staged
from weft.runtime.protocol.engine import Engine, OutcomeT, Retained
from weft.runtime.protocol.step import StepWork


class Preparing(Generic[OutcomeT]):
    """A follower's engine in front of another one."""

    def __init__(self, inner: Engine[OutcomeT]) -> None:
        self._inner = inner

    @property
    def where(self) -> str:
        return self._inner.where

    def may_overlap(self, work: StepWork) -> bool:
        """A follower gains nothing: its input is files, which it need not read early."""
        return False

    def serves(self, head: Commit | Staged) -> bool:
        return self._inner.serves(head)

    def outgrown(self, head: Commit | Staged, last: Commit | None) -> bool:
        return self._inner.outgrown(head, last)

    def new_plan(self, work: StepWork, last: Commit | None) -> int:
        return self._inner.new_plan(work, last)

    def replanned(self, failures: Sequence[str], version: int, last: Commit | None) -> int:
        return self._inner.replanned(failures, version, last)

    def left_out(self, failures: Sequence[str], version: int) -> int:
        return self._inner.left_out(failures, version)

    def tables(self, version: int) -> dict[str, str]:
        """What is published has met its tables."""
        return {}

    def compute(
        self, work: StepWork, intent: Intent, last: Commit | None, sequence: int
    ) -> OutcomeT:
        return self._inner.compute(work, intent, last, sequence)

    def retain(
        self, work: StepWork, intent: Intent, outcome: OutcomeT, last: Commit | None
    ) -> Retained:
        return self._inner.retain(work, intent, outcome, last)

    def committed(self, work: StepWork, intent: Intent, outcome: OutcomeT, commit: Commit) -> None:
        self._inner.committed(work, intent, outcome, commit)
