"""Settings of a weft, and the session settings that results depend on."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from pyspark.sql import SparkSession

from weft.algebra.plan import PASS_NAMES
from weft.errors import RunError
from weft.optimizer.node_tree import NATIVE

Kernel = Literal["auto", "driver", "lanes"]
KERNELS = get_args(Kernel)
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
    `most_unconsumed`: how many steps a stream may be ahead of what follows it (row windows) before it
    waits. `overlap`: whether a micro-batch may be finished while the next one is read.
    `allow_unsafe_sql`: whether queries that run alone may call Java methods, start programs and
    read files by path (docs/sql.md).
    """

    kernel: Kernel = "auto"
    driver_cap_bytes: int = 1 << 30
    lanes: int | None = None
    idle_seconds: float = 1.0
    sink_tries: int = 3
    sink_pause_seconds: float = 0.5
    optimizer: str = "best"
    model: str = "calibrated"
    assumed_rate: float = 1000.0
    replan_drift: float = 2.0
    passes: tuple[str, ...] = PASS_NAMES
    memory_budget: int | None = None
    allocator: str = NATIVE
    statistics_every: int = 20
    overlap: bool = True
    most_unconsumed: int = 16
    allow_unsafe_sql: bool = False


def settings_of(values: dict[str, Any]) -> Settings:
    """The settings of keyword arguments; unknown names are refused."""
    known = [each.name for each in fields(Settings)]
    for name in values:
        if name not in known:
            listed = ", ".join(known)
            raise RunError("UNKNOWN_SETTING", name="setting", value=name, known=listed)
    settings = Settings(**values)
    check_settings(settings)
    return settings


def check_settings(settings: Settings) -> None:
    """Refuse values that mean nothing."""
    lanes, budget, rate = settings.lanes, settings.memory_budget, settings.assumed_rate
    drift, passes = settings.replan_drift, settings.passes
    meant = {
        "kernel": (settings.kernel in KERNELS, f"there are {', '.join(KERNELS)}"),
        "lanes": (lanes is None or _whole(lanes, 1), "give a number of lanes, or none"),
        "assumed_rate": (_number(rate) and 0 < rate < math.inf, "give rows per second"),
        "replan_drift": (_number(drift) and drift >= 1, "give a factor of 1 or more"),
        "memory_budget": (budget is None or _whole(budget, 0), "give a number of groups, or none"),
        "passes": (isinstance(passes, (tuple, list)), f"give a tuple of {', '.join(PASS_NAMES)}"),
        "statistics_every": (
            _whole(settings.statistics_every, 0),
            "give a number of micro-batches, 0 for none",
        ),
        "most_unconsumed": (_whole(settings.most_unconsumed, 1), "give a number of steps"),
        "overlap": (isinstance(settings.overlap, bool), "give True or False"),
        "allow_unsafe_sql": (isinstance(settings.allow_unsafe_sql, bool), "give True or False"),
    }
    for name, (holds, detail) in meant.items():
        if not holds:
            value = getattr(settings, name)
            raise RunError("BAD_SETTING", name=name, value=value, detail=detail)


def _whole(value: object, least: int) -> bool:
    return type(value) is int and value >= least


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def session_settings(spark: SparkSession) -> dict[str, str]:
    """The settings that a checkpoint is bound to."""
    return {name: str(spark.conf.get(key)) for name, key in SESSION_SETTINGS.items()}
