"""What differs between kinds of steps: the engine, as the stepper sees it.

The stepper decides the order, and does everything that makes a step durable. It calls the engine,
always in this order:

    serves, outgrown    whether the plan of the step before is still right
    new_plan            another one, if it is not
    read                native Spark: turns rows, or published files, into files of the engine
    compute             computes results from these files alone
    retain              says which files stay alive after the step
    committed           the step is durable: keep what speeds up the next one

`read` and `compute` raise `StepFailed` for queries that fail on their own data. Then `replanned` and
`left_out` give the plan without these queries. Nothing that an engine writes is visible before the
commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from weft.runtime.checkpoint.commits import Commit, Entry, Intent, Staged
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.protocol.step import StepWork


class Outcome(Protocol):
    """What an engine computed for a step: the part that the stepper needs."""

    @property
    def rows(self) -> int:
        """How many result rows there are."""
        ...

    @property
    def families(self) -> Mapping[str, Sequence[pa.Table]]:
        """Results for the sink, by result family."""
        ...

    @property
    def written(self) -> Sequence[Entry]:
        """Result files that tasks have written already."""
        ...


OutcomeT = TypeVar("OutcomeT", bound=Outcome)


@dataclass(frozen=True)
class Retained:
    """What a step leaves: all live files by kind, the files to delete after the commit, the engine's
    own part of the commit, and totals."""

    live: Mapping[str, tuple[Entry, ...]]
    dead: Sequence[Entry] = ()
    section: Mapping[str, Any] = field(default_factory=dict)
    late: Mapping[str, int] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)


class Engine(Protocol[OutcomeT]):
    """One kind of computation over a log; composed, not inherited."""

    def serves(self, head: Commit | Staged) -> bool:
        """Whether the plan of the head is for exactly the queries that are registered."""
        ...

    def outgrown(self, head: Commit | Staged, last: Commit | None) -> bool:
        """Whether another plan for the same queries pays by now. Of each drift it is asked once."""
        ...

    def new_plan(self, work: StepWork, last: Commit | None) -> int:
        """Make a new plan for the registered queries and keep it in the log; its version."""
        ...

    def tables(self, version: int) -> dict[str, str]:
        """The versions of the tables that a step with this plan reads, to be fixed in its intent."""
        ...

    def read(self, work: StepWork, intent: Intent, last: Commit | None) -> None:
        """Fill `work.files` and `work.counted`."""
        ...

    def replanned(self, failures: Sequence[str], version: int, last: Commit | None) -> int:
        """A new plan without queries that failed while rows were read."""
        ...

    def compute(
        self, work: StepWork, intent: Intent, last: Commit | None, sequence: int
    ) -> OutcomeT:
        """The step's results, from files alone."""
        ...

    def left_out(self, failures: Sequence[str], version: int) -> int:
        """The same plan without queries that failed in `compute`. It uses the files already read."""
        ...

    def retain(
        self, work: StepWork, intent: Intent, outcome: OutcomeT, last: Commit | None
    ) -> Retained: ...

    def committed(
        self, work: StepWork, intent: Intent, outcome: OutcomeT, commit: Commit
    ) -> None: ...

    def may_overlap(self, work: StepWork) -> bool:
        """Whether the step may be computed while the next one is read."""
        ...

    @property
    def where(self) -> str:
        """Where `compute` runs: driver or lanes."""
        ...


class Outlet(Protocol):
    """Where the stepper delivers results, and who looks after result files."""

    def deliver(
        self, log: StreamLog, work: StepWork, intent: Intent, outcome: Outcome, sequence: int
    ) -> list[Entry]:
        """Deliver the results of a step; the files that the commit must name."""
        ...

    def remove_unnamed(self, log: StreamLog, step: str, merged: str) -> None:
        """Delete files left by earlier attempts at `step`, or at merging after the step `merged`."""
        ...

    def base(self, log: StreamLog, commit: Commit, attempt: str) -> None:
        """Write the base of a commit, with its list of result files."""
        ...
