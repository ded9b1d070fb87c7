"""A step under way, and what it reports when it is done."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from weft.errors import RunError
from weft.kernel.failure import QueryFailure
from weft.runtime.cause import cause_of
from weft.runtime.checkpoint.commits import Entry, Kind, step_name
from weft.runtime.checkpoint.log import Plan


class Halted(Exception):
    """Spark's query is being stopped. The batch will run after the next start."""


@contextmanager
def answering_spark() -> Iterator[None]:
    """For functions that Spark calls. Spark learns only of an `Exception`. After any other error, such
    as SystemExit, it would wait for ever."""
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        raise RunError("QUERY_FAILED", detail=cause_of(error)) from error


class StepFailed(Exception):
    """Some queries failed on their own data; the step is run again without them."""

    def __init__(self, failures: Mapping[str, QueryFailure]) -> None:
        super().__init__(", ".join(failures))
        self.failures = failures


@dataclass(frozen=True)
class Progress:
    """What a finished step reports. Durations are in seconds, event times in microseconds."""

    stream: str
    batch: int
    kind: str
    rows: int
    results: int
    seconds: float
    watermark: int
    late_rows: int
    null_times: int
    state_rows: int
    state_bytes: int
    plan_version: int
    queries: int
    where: str
    """Where the engine computed: driver or lanes."""
    durations: Mapping[str, float]
    unconsumed: int = 0
    """How many of the stream's steps its slowest follower has not consumed."""
    waits_for: Mapping[str, Any] = field(default_factory=dict)
    """Of a follower: the streams that hold the others back, with their watermark and since when it stands."""


@dataclass(frozen=True)
class Hooks:
    """What a stepper needs from its surroundings."""

    quarantine: Callable[[str, str], None]
    planned: Callable[[str, Plan, Mapping[str, int]], None]
    """Told after a step: the log, its plan, and what came too late."""
    progress: Callable[[Progress], None]


@dataclass
class StepWork:
    """A step under way: its rows (none for a flush), its files, what it counted."""

    batch: int
    kind: Kind
    spark: SparkSession
    rows: DataFrame | None
    own_session: bool = True
    """Whether the session is a copy of the user's; only then may its settings be changed."""
    attempt: str = field(default_factory=lambda: StepWork.new_attempt())
    started: float = field(default_factory=time.perf_counter)
    durations: dict[str, float] = field(default_factory=dict)
    counted: dict[str, Any] = field(default_factory=dict)
    files: list[Entry] = field(default_factory=list)
    """What the engine wrote when it read the rows."""
    published: list[Entry] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """The queries that were left out, with their errors."""
    keeps_rows: bool = False
    """Whether the engine still needs the rows after the commit."""
    count_later: Callable[[bool], Mapping[str, Any]] | None = None
    """Gives the counts of a step whose rows are counted while they are published, told whether Spark has
    read them for that."""
    scratch: object = None
    """What the engine has computed from the files. It is kept when the step is computed again."""

    @property
    def name(self) -> str:
        return step_name(self.batch, self.kind)

    @staticmethod
    def new_attempt() -> str:
        """A unique name for the files of one attempt at a step."""
        return uuid.uuid4().hex[:12]

    def count(self, name: str) -> int:
        return int(self.counted.get(name) or 0)

    def count_published(self, *, seen: bool) -> None:
        """Take the counts that were left until the rows are published; `seen`: Spark has read them."""
        if self.count_later is not None:
            self.counted |= self.count_later(seen)
            self.count_later = None

    def again(self) -> StepWork:
        """The same step from the beginning, with new file names."""
        return StepWork(
            self.batch,
            self.kind,
            self.spark,
            self.rows,
            self.own_session,
            started=self.started,
            failed=self.failed,
        )

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.durations[name] = self.durations.get(name, 0.0) + time.perf_counter() - started
