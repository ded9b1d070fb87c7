"""A step under way, and what it reports when it is done."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession

from weft.algebra.plan import SharedPlan
from weft.algebra.query import Query
from weft.errors import RunError
from weft.kernel.windows.failure import QueryFailure
from weft.runtime.planning.sampling import Sampling
from weft.runtime.protocol.log import Entry, step_name


class Halted(Exception):
    """Spark's query is being stopped; the batch is left for the next start."""


@contextmanager
def answering_spark() -> Iterator[None]:
    """For what Spark calls. It is told of an `Exception` only; of a SystemExit, say, it would never
    hear, and wait for ever."""
    try:
        yield
    except Exception:
        raise
    except BaseException as error:
        raise RunError("QUERY_FAILED", detail=f"{type(error).__name__}: {error}") from error


class StepFailed(Exception):
    """Queries that failed on their own data; the step is run again without them."""

    def __init__(self, failures: dict[str, QueryFailure]) -> None:
        super().__init__(", ".join(failures))
        self.failures = failures


@dataclass(frozen=True)
class Progress:
    """What a finished step reports; times in seconds, event times in microseconds."""

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
    placement: str
    durations: dict[str, float]


@dataclass(frozen=True)
class Hooks:
    """What a loom needs from its surroundings."""

    queries: Callable[[], Sequence[Query]]
    quarantine: Callable[[str, str], None]
    planned: Callable[[SharedPlan, dict[str, int]], None]
    progress: Callable[[Progress], None]
    sampling: Sampling = field(default_factory=lambda: Sampling(every=0))


@dataclass
class StepWork:
    """A step under way: its rows (none for a flush), its files, what it counted."""

    batch: int
    kind: Literal["data", "flush"]
    spark: SparkSession
    rows: DataFrame | None
    attempt: str = field(default_factory=lambda: StepWork.new_attempt())
    started: float = field(default_factory=time.perf_counter)
    durations: dict[str, float] = field(default_factory=dict)
    counted: dict[str, Any] = field(default_factory=dict)
    first_files: list[Entry] = field(default_factory=list)
    """Fragments of first-level nodes."""
    derived: bool = False
    """Whether the other nodes have theirs, too."""
    new_files: list[Entry] = field(default_factory=list)
    passing_files: list[Entry] = field(default_factory=list)
    """Fragments of intermediates, which no later step needs."""
    sampled: bool = False
    """Whether its rows are to be sampled once it is committed."""

    @property
    def name(self) -> str:
        return step_name(self.batch, self.kind)

    @staticmethod
    def new_attempt() -> str:
        """A name of its own for what one attempt at a step writes."""
        return uuid.uuid4().hex[:12]

    def count(self, name: str) -> int:
        return int(self.counted.get(name) or 0)

    def again(self) -> StepWork:
        """The same step from the beginning, with file names of its own."""
        return StepWork(self.batch, self.kind, self.spark, self.rows, started=self.started)

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.durations[name] = time.perf_counter() - started
