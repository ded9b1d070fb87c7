"""Settings of a weft, and the session settings that results depend on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyspark.sql import SparkSession

from weft.algebra.plan import PASSES
from weft.errors import RunError
from weft.optimizer.groupby.arrange import NATIVE

SESSION_SETTINGS = {
    "time_zone": "spark.sql.session.timeZone",
    "ansi": "spark.sql.ansi.enabled",
}


@dataclass(frozen=True)
class Settings:
    """How a weft runs; none of these changes a result.

    `kernel`: where levels 2 and 3 run; `auto` takes the driver while the open state is below
    `driver_cap_bytes` and lanes above. `lanes`: how many (default: the session's parallelism).
    `idle_seconds`: how long a stream must be quiet before due windows are flushed.
    `sink_tries`: how often a failing sink is tried on the same batch.
    `optimizer`, `model`: who chooses the weave groups, and by which cost (docs/sharing.md).
    `assumed_rate`: rows per second of event time to plan for before any are measured.
    `replan_drift`: by which factor the rate must change before groups are chosen again.
    `passes`: which parts of the optimizer run: predicates, groupby, windows (docs/sharing.md).
    `memory_budget`: how many groups per fragment the intermediates of the aggregate tree may hold
    together; None is no bound. `allocator`: who plans the tree: native, fptas, uniform, slc.
    `statistics_every`: every how many micro-batches one is sampled (docs/statistics.md); 0: none.
    """

    kernel: Literal["auto", "driver", "lanes"] = "auto"
    driver_cap_bytes: int = 1 << 30
    lanes: int | None = None
    idle_seconds: float = 1.0
    sink_tries: int = 3
    sink_pause_seconds: float = 0.5
    optimizer: str = "best"
    model: str = "calibrated"
    assumed_rate: float = 1000.0
    replan_drift: float = 2.0
    passes: tuple[str, ...] = PASSES
    memory_budget: int | None = None
    allocator: str = NATIVE
    statistics_every: int = 20


def check_settings(settings: Settings) -> None:
    """Refuse values that mean nothing."""
    every = settings.statistics_every
    if type(every) is not int or every < 0:
        raise RunError(
            "BAD_SETTING",
            name="statistics_every",
            value=every,
            detail="give a number of micro-batches, 0 for none",
        )


def session_settings(spark: SparkSession) -> dict[str, str]:
    """The settings that a checkpoint is bound to."""
    return {name: str(spark.conf.get(key)) for name, key in SESSION_SETTINGS.items()}
