"""Settings of a weft, and the session settings that results depend on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from pyspark.sql import SparkSession

from weft.algebra.plan import PASS_NAMES
from weft.errors import RunError
from weft.optimizer.node_tree import NATIVE
from weft.sql.reading.intervals import IntervalProblem, interval_micros

Kernel = Literal["auto", "driver", "lanes"]
KERNELS = get_args(Kernel)
LateJoins = Literal["auto", "network", "instants"]
LATE_JOINS = get_args(LateJoins)
MOST_LANES = 100_000
SESSION_SETTINGS = {
    "time_zone": "spark.sql.session.timeZone",
    "ansi": "spark.sql.ansi.enabled",
}


@dataclass(frozen=True)
class Settings:
    """How a weft runs; none of these changes a result.

    `kernel`: where levels 2 and 3, the network's joins and aggregation joins run; `auto` takes the driver
    while the open state, the history of joins, or the entries of aggregation joins are below
    `driver_cap_bytes`, and lanes above. `lanes`: how many (default: the session's parallelism), or the weight of
    each: a lane of weight 2 is given twice the work of one of weight 1. They may change with a restart. `lane_cap_bytes`: how many bytes of rows or of fragments a lane holds at once;
    more are taken in pieces.
    `idle_seconds`: how long a stream must be quiet before due windows are flushed.
    `sink_tries`: how often a failing sink is tried on the same batch, and how often a fallback may
    fail one time after the other; `sink_pause_seconds`: the first pause between, which grows.
    `keep`: how long results are kept after they were written, such as "7 days"; None is for ever.
    `optimizer`, `model`: who chooses the weave groups, and by which cost (docs/sharing.md).
    `assumed_rate`: rows per second of event time to plan for before any are measured.
    `replan_drift`: by which factor the rate must change before groups are chosen again.
    `passes`: which parts of the optimizer run: predicates, groupby, windows (docs/sharing.md).
    `memory_budget`: how many groups per fragment the intermediates of the aggregate tree may hold
    together; None is no bound. `allocator`: who plans the tree: native, fptas, uniform, slc.
    `statistics_every`: every how many micro-batches one is sampled (docs/statistics.md); 0: none.
    `most_unconsumed`: how many steps a stream may be ahead of what follows it (row windows) before it
    waits. `overlap`: whether a micro-batch may be finished while the next one is read.
    `most_matches`: how many rows one join may add in a step before its queries are quarantined.
    `early`: which inputs of aggregation joins are aggregated before the join: "auto" (by cost), "all", "none", or a truth
    value for each input (docs/early-aggregation.md). `late_joins`: where late inputs are joined: "network" (each match is found once, by
    the query network), "instants" (anew at every instant), "auto" (by cost). `finer_sets`: whether one published
    aggregation set may serve several inputs (docs/decisions/0019).
    `allow_unsafe_sql`: whether queries that run alone may call Java methods, start programs and
    read files by path (docs/sql.md).
    """

    kernel: Kernel = "auto"
    driver_cap_bytes: int = 1 << 30
    lanes: int | Sequence[float] | None = None
    lane_cap_bytes: int = 1 << 28
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
    most_matches: int = 5_000_000
    early: str | tuple[bool, ...] = "auto"
    late_joins: LateJoins = "auto"
    finer_sets: bool = True
    allow_unsafe_sql: bool = False
    keep: str | None = None

    def lane_weights(self, parallelism: int) -> tuple[float, ...]:
        """The weight of each lane, in a session of some parallelism.

        >>> Settings().lane_weights(1), Settings(lanes=3).lane_weights(1), Settings(lanes=[2, 1]).lane_weights(1)
        ((1.0, 1.0), (1.0, 1.0, 1.0), (2.0, 1.0))
        """
        if self.lanes is None or isinstance(self.lanes, int):
            return (1.0,) * (self.lanes or max(2, parallelism))
        return tuple(map(float, self.lanes))

    @property
    def keep_micros(self) -> int | None:
        """How long results are kept, in microseconds; None is for ever."""
        return None if self.keep is None else interval_micros(self.keep)


def settings_of(values: dict[str, Any]) -> Settings:
    """The settings of keyword arguments; unknown names are refused."""
    names = [setting.name for setting in fields(Settings)]
    for name in values:
        if name not in names:
            known = ", ".join(names)
            raise RunError("UNKNOWN_SETTING", name="setting", value=name, known=known)
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    settings = Settings(**{**values, **lists})
    check_settings(settings)
    return settings


def check_settings(settings: Settings) -> None:
    """Refuse values that mean nothing."""
    lanes, budget, rate = settings.lanes, settings.memory_budget, settings.assumed_rate
    drift, passes = settings.replan_drift, settings.passes
    meant = {
        "driver_cap_bytes": (_whole(settings.driver_cap_bytes, 0), "give a number of bytes"),
        "lane_cap_bytes": (
            _whole(settings.lane_cap_bytes, 1 << 20),
            "give a number of bytes, a mebibyte or more",
        ),
        "idle_seconds": (_seconds(settings.idle_seconds), "give seconds, 0 or more"),
        "sink_tries": (_whole(settings.sink_tries, 1), "give a number of tries, 1 or more"),
        "sink_pause_seconds": (_seconds(settings.sink_pause_seconds), "give seconds, 0 or more"),
        "kernel": (settings.kernel in KERNELS, f"there are {', '.join(KERNELS)}"),
        "lanes": (
            lanes is None or _count_of_lanes(lanes) or _weights(lanes),
            f"give a number of lanes, or a weight for each from a millionth to a million, or none; at most {MOST_LANES:,} lanes",
        ),
        "assumed_rate": (_number(rate) and 0 < rate < math.inf, "give rows per second"),
        "replan_drift": (_number(drift) and drift >= 1, "give a factor of 1 or more"),
        "memory_budget": (budget is None or _whole(budget, 0), "give a number of groups, or none"),
        "passes": (isinstance(passes, (tuple, list)), f"give a tuple of {', '.join(PASS_NAMES)}"),
        "statistics_every": (
            _whole(settings.statistics_every, 0),
            "give a number of micro-batches, 0 for none",
        ),
        "most_unconsumed": (_whole(settings.most_unconsumed, 1), "give a number of steps"),
        "most_matches": (_whole(settings.most_matches, 1), "give a number of rows"),
        "keep": _interval(settings.keep),
        "early": _early(settings.early),
        "late_joins": (settings.late_joins in LATE_JOINS, f"there are {', '.join(LATE_JOINS)}"),
        "finer_sets": (isinstance(settings.finer_sets, bool), "give True or False"),
        "overlap": (isinstance(settings.overlap, bool), "give True or False"),
        "allow_unsafe_sql": (isinstance(settings.allow_unsafe_sql, bool), "give True or False"),
    }
    for name, (holds, detail) in meant.items():
        if not holds:
            if name == "lanes":
                _name_wrong_weight(lanes)
            value = getattr(settings, name)
            raise RunError("BAD_SETTING", name=name, value=value, detail=detail)


def _interval(value: object) -> tuple[bool, str]:
    """Whether a value is a positive interval, or None; and what to write instead."""
    advice = "give an interval such as '7 days', or none to keep results for ever"
    if value is None:
        return True, advice
    try:
        return isinstance(value, str) and interval_micros(value) > 0, advice
    except IntervalProblem as problem:
        return False, f"{problem}; {advice}"


def _early(value: object) -> tuple[bool, str]:
    """Whether a value says which inputs are early; and what to write instead."""
    bits = isinstance(value, (tuple, list)) and all(isinstance(bit, bool) for bit in value)
    return value in ("auto", "all", "none") or bits, "give auto, all, none, or a tuple of bool"


def _count_of_lanes(value: object) -> bool:
    return _whole(value, 1) and value in range(MOST_LANES + 1)


def _weights(value: object) -> bool:
    """Whether a value is one positive weight or more."""
    return (
        isinstance(value, (tuple, list))
        and 1 <= len(value) <= MOST_LANES
        and all(map(_is_weight, value))
    )


def _is_weight(value: object) -> bool:
    return isinstance(value, (int, float)) and _number(value) and 1e-6 <= value <= 1e6


def _name_wrong_weight(value: object) -> None:
    """Refuse the first wrong one of not too many weights."""
    weights = value if isinstance(value, (tuple, list)) and len(value) <= MOST_LANES else ()
    for number, weight in enumerate(weights):
        if not _is_weight(weight):
            raise RunError(
                "BAD_SETTING",
                name=f"the weight of lane {number + 1}",
                value=weight,
                detail="weights in lanes are numbers from a millionth to a million",
                position=number,
            )


def _whole(value: object, least: int) -> bool:
    return type(value) is int and value >= least


def _number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _seconds(value: object) -> bool:
    return isinstance(value, (int, float)) and _number(value) and 0 <= value < math.inf


def trigger_of(available_now: object, processing_time: object) -> dict[str, Any]:
    """When micro-batches begin, as Spark's `trigger` takes it.

    >>> trigger_of(None, "5 seconds"), trigger_of(True, None), trigger_of(None, None)
    ({'processingTime': '5 seconds'}, {'availableNow': True}, {'processingTime': '0 seconds'})
    """
    if available_now not in (None, True, False):
        raise RunError(
            "BAD_SETTING", name="availableNow", value=available_now, detail="give True or False"
        )
    if processing_time is None:
        return {"availableNow": True} if available_now else {"processingTime": "0 seconds"}
    problem = _interval_problem(processing_time)
    if available_now:
        problem = "give availableNow or processingTime, not both"
    if problem is not None:
        raise RunError("BAD_SETTING", name="processingTime", value=processing_time, detail=problem)
    return {"processingTime": processing_time}


def _interval_problem(text: object) -> str | None:
    if not isinstance(text, str):
        return "give an interval, such as '5 seconds'"
    try:
        return "it is negative" if interval_micros(text) < 0 else None
    except IntervalProblem as problem:
        return str(problem)


def session_settings(spark: SparkSession) -> dict[str, str]:
    """The settings that a checkpoint is bound to."""
    return {name: str(spark.conf.get(key)) for name, key in SESSION_SETTINGS.items()}
