"""Statistics of a running stream: now and then a small job samples a micro-batch.

The job runs after the commit of a step, so that no result depends on it. If it fails, the error is
logged and the step goes on. A micro-batch of at most `MOST_ROWS` rows is taken whole. For a larger one,
a random sample gives the quartiles of event time. Then one job reads a stretch of event time:
consecutive rows, as in a fragment. On about `SKETCHED_ROWS` rows it sketches the groups of the plan's
key sets (HyperLogLog with 4096 registers, relative error below 2 %). The first `MOST_ROWS` of these
rows are the sample: their keys are hashed, and predicates are evaluated on them. Everything else is
NumPy on the driver. From one sample to the next the stretch moves through the middle half of the
micro-batch, where outliers do not disturb it.

The work is bounded: at most `_MOST_KEYS` keys, `_MOST_PREDICATES` predicates and `_MOST_SKETCHES`
sketches at a time. Predicates with the fewest sampled rows come first, so that all have their turn.
After the first samples, sampling takes at most 2 % of the time of all steps. Expressions that can raise
are left out. So are rows without event time, which level 1 drops, and what reads columns of tables: the rows
are sampled before any lookup.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from weft.algebra.aggregate import stored
from weft.algebra.network.lookup import Lookup, split_prefix
from weft.algebra.plan import SharedPlan
from weft.algebra.query import quote
from weft.algebra.scalar import Expression
from weft.stats import Selectivity, Sketch, StreamStatistics
from weft.stats.sample import MOST_ROWS, Hashes

_MOST_KEYS, _MOST_PREDICATES, _MOST_SKETCHES = 32, 64, 8
_LOG_K = 12
_TIMES_SHARE = 1 / 64
_ACCURACY = 100
SKETCHED_ROWS = 400_000
_GOLDEN = 0.618034
_ENOUGH_ROWS, _CHEAP_ROWS = 1000, 200_000
_FIRST_STEPS = 2
MOST_SHARE = 0.02
_UNHASHABLE = ("map<", "variant")
_logger = logging.getLogger("weft")


class Sampling:
    """Collects the statistics of one stream, and passes them to `keep`.

    The first two micro-batches of 1000 to 200,000 rows are sampled, so that there are statistics
    early. Then every `every`-th is sampled (0: none), unless sampling has taken more than 2 % of the
    time of all steps so far.
    """

    def __init__(
        self,
        every: int,
        statistics: StreamStatistics | None = None,
        keep: Callable[[StreamStatistics], None] | None = None,
    ) -> None:
        self._every, self._keep = every, keep
        self._taken = 0
        self._spent = self._worked = 0.0
        self.statistics = statistics or StreamStatistics.unknown()

    def due(self, batch: int, rows: int, seconds: float) -> bool:
        """Whether to sample a micro-batch. Its step has taken `seconds` so far."""
        self._worked += seconds
        if not self._every or not rows:
            return False
        if self._taken < _FIRST_STEPS and _ENOUGH_ROWS <= rows <= _CHEAP_ROWS:
            return True
        turn = batch % self._every == self._every - 1
        return turn and self._spent <= MOST_SHARE * self._worked

    def look(self, rows: DataFrame, plan: SharedPlan) -> None:
        """Sample the first rows of a stream, before its first plan. `plan` is a draft, which names the
        keys and predicates to sample."""
        if not self._every:
            return
        try:
            times = Times.of(rows, plan, self._taken)
        except Exception as error:
            reason = str(error).split("\n", 1)[0]
            _logger.warning("stream %s: no first look at its rows: %s", plan.stream.name, reason)
            return
        if times.count < _ENOUGH_ROWS or times.latest <= times.earliest:
            return
        rate = times.count * 1e6 / (times.latest - times.earliest)
        self.collect(rows, plan, times.count, {"rows": times.count, "rate": rate}, times)
        self._taken -= 1

    def collect(
        self,
        rows: DataFrame,
        plan: SharedPlan,
        count: int,
        metrics: Mapping[str, Any],
        times: Times | None = None,
    ) -> None:
        """Sample a micro-batch of `count` rows; `metrics` are those of its commit."""
        self._taken += 1
        started = time.perf_counter()
        try:
            statistics = sampled(self.statistics, rows, plan, count, self._taken, times)
            self.statistics = statistics = statistics.counted(metrics)
            if self._keep is not None:
                self._keep(statistics)
        except Exception as error:
            reason = str(error).split("\n", 1)[0]
            name = plan.stream.name
            _logger.warning("stream %s: no statistics of this micro-batch: %s", name, reason)
        if self._taken > _FIRST_STEPS:
            self._spent += time.perf_counter() - started


@dataclass(frozen=True)
class Times:
    """Event times of a micro-batch: their estimated number, the earliest and the latest, the first and
    the last quartile. They are those of a random sample, unless the micro-batch is small."""

    count: int
    earliest: int
    latest: int
    quartiles: tuple[int, int]

    @staticmethod
    def of(rows: DataFrame, plan: SharedPlan, turn: int) -> Times:
        times = rows.select(F.expr(plan.stream.time_micros).alias("at"))
        percentiles = F.expr(f"approx_percentile(at, array(0.25, 0.75), {_ACCURACY})")
        measures = (F.count("at"), F.min("at"), F.max("at"), percentiles)
        ((count, earliest, latest, quartiles),) = (
            times.sample(_TIMES_SHARE, turn).agg(*measures).collect()
        )
        if count >= _ENOUGH_ROWS:
            return Times(round(count / _TIMES_SHARE), earliest, latest, tuple(quartiles))
        ((count, earliest, latest, quartiles),) = times.agg(*measures).collect()
        return Times(count, earliest or 0, latest or 0, tuple(quartiles or (0, 0)))


def sampled(
    statistics: StreamStatistics,
    rows: DataFrame,
    plan: SharedPlan,
    count: int,
    turn: int,
    times: Times | None = None,
) -> StreamStatistics:
    """The statistics after a micro-batch of `count` rows, the `turn`-th that is sampled."""
    keys, predicates = keys_of(plan), predicates_of(plan, statistics)
    if not keys and not predicates:
        return statistics
    present = rows.where(F.col(quote(plan.stream.time)).isNotNull())
    if count <= MOST_ROWS:
        sketches = dict(statistics.sketches)
        table = _sample(present, plan, keys, predicates)
    else:
        quartiles = (times or Times.of(rows, plan, turn)).quartiles
        longer = _stretch(quartiles, count, turn, SKETCHED_ROWS)
        shorter = _within(longer, min(MOST_ROWS / min(SKETCHED_ROWS, count / 2), 1.0))
        sketching = _Sketching.of(statistics, key_sets(plan, keys))
        observed = sketching.observed(_between(present, plan, longer))
        first_rows = _between(observed, plan, shorter).limit(MOST_ROWS)
        table = _sample(first_rows, plan, keys, predicates)
        sketches = sketching.sketches(statistics)
    hashes = {key.sql: _hashes(table.column(i)) for i, key in enumerate(keys)}
    selectivities = dict(statistics.selectivities)
    for column, predicate in enumerate(predicates, len(keys)):
        kept = int(np.count_nonzero(table.column(column).to_numpy()))
        before = selectivities.get(predicate.sql, Selectivity(0.0, 0.0))
        if table.num_rows:
            selectivities[predicate.sql] = before.then(kept, table.num_rows)
    return replace(
        statistics,
        sample=statistics.sample.then(hashes),
        sketches=MappingProxyType(sketches),
        selectivities=MappingProxyType(selectivities),
    )


def keys_of(plan: SharedPlan) -> list[Expression]:
    """The plan's keys that are safe to evaluate on any row, the most used ones first."""
    uses: dict[str, int] = {}
    safe_keys: dict[str, Expression] = {}
    own_keys = (
        key for node in plan.nodes for key in node.keys if not _reads_table(key, node.lookups)
    )
    for key in own_keys:
        if not key.can_raise and not any(word in key.type for word in _UNHASHABLE):
            safe_keys[key.sql] = key
            uses[key.sql] = uses.get(key.sql, 0) + 1
    return sorted(safe_keys.values(), key=lambda key: -uses[key.sql])[:_MOST_KEYS]


def key_sets(plan: SharedPlan, keys: Sequence[Expression]) -> list[frozenset[str]]:
    """The sets of keys that the plan's nodes group by, if all keys of a set are sampled."""
    sampled_keys = {key.sql for key in keys}
    sets = dict.fromkeys(frozenset(key.sql for key in node.keys) for node in plan.nodes)
    return [key_set for key_set in sets if key_set and key_set <= sampled_keys]


def predicates_of(plan: SharedPlan, statistics: StreamStatistics) -> list[Expression]:
    """The plan's predicates that are safe to evaluate on any row, the least sampled ones first."""
    safe_predicates = {
        query.predicate.sql: query.predicate
        for query in plan.queries
        if query.predicate is not None
        and not query.predicate.can_raise
        and not _reads_table(query.predicate, query.lookups)
    }

    def sampled_rows(predicate: Expression) -> float:
        return statistics.selectivity(predicate.sql).rows

    return sorted(safe_predicates.values(), key=sampled_rows)[:_MOST_PREDICATES]


def _reads_table(expression: Expression, lookups: Sequence[Lookup]) -> bool:
    """Whether an expression reads a column of a table."""
    return bool(lookups) and any(split_prefix(name)[0] for name in expression.columns)


def _stretch(quartiles: tuple[int, int], count: int, turn: int, most: int) -> tuple[int, int]:
    """A stretch of event time between the quartiles of a micro-batch, with about `most` rows."""
    first, last = quartiles
    length = max(round((last - first) * min(most / (count / 2), 1.0)), 1)
    start = first + round(max(last - first - length, 0) * (turn * _GOLDEN % 1.0))
    return start, start + length


def _within(stretch: tuple[int, int], share: float) -> tuple[int, int]:
    """The first part of a stretch."""
    start, end = stretch
    return start, start + max(round((end - start) * share), 1)


def _between(rows: DataFrame, plan: SharedPlan, stretch: tuple[int, int]) -> DataFrame:
    """The rows of a stretch of event time."""
    column, (start, end) = quote(plan.stream.time), stretch
    within = f"{column} >= timestamp_micros({start}L) AND {column} < timestamp_micros({end}L)"
    return rows.where(F.expr(within))


def _sample(
    rows: DataFrame,
    plan: SharedPlan,
    keys: Sequence[Expression],
    predicates: Sequence[Expression],
) -> pa.Table:
    """Hashes of the keys and outcomes of the predicates, in the order of event time."""
    columns = [F.expr(f"xxhash64({stored(key.sql, key.type)})") for key in keys]
    columns += [F.expr(f"coalesce({predicate.sql}, false)") for predicate in predicates]
    columns += [F.expr(plan.stream.time_micros)]
    named = [column.alias(f"c{index}") for index, column in enumerate(columns)]
    table = rows.select(*named).toArrow()
    return table.sort_by(table.column_names[-1])


def _hashes(column: pa.ChunkedArray) -> Hashes:
    hashes: Hashes = column.to_numpy().astype(np.uint64).astype(np.uint32)
    return hashes


@dataclass(frozen=True)
class _Sketching:
    """Sketches of key sets, computed while another job reads the rows. The oldest sketches are renewed
    first; the others wait for their turn."""

    renewed: tuple[frozenset[str], ...]
    later: tuple[frozenset[str], ...]
    observation: Observation

    @staticmethod
    def of(statistics: StreamStatistics, key_sets: Sequence[frozenset[str]]) -> _Sketching:
        ranks = {key_set: rank for rank, key_set in enumerate(statistics.sketches, 1)}
        ordered = sorted(key_sets, key=lambda key_set: ranks.get(key_set, 0))
        renewed, later = ordered[:_MOST_SKETCHES], ordered[_MOST_SKETCHES:]
        return _Sketching(tuple(renewed), tuple(later), Observation(f"weft_{uuid.uuid4().hex}"))

    def observed(self, rows: DataFrame) -> DataFrame:
        """The same rows. A job that reads them also computes the sketches."""
        measures = [F.count(F.lit(1)).alias("rows")]
        for index, key_set in enumerate(self.renewed):
            sketch = f"hll_sketch_agg(xxhash64({', '.join(sorted(key_set))}), {_LOG_K})"
            measures.append(F.expr(f"hll_sketch_estimate({sketch})").alias(f"groups{index}"))
        return rows.observe(self.observation, *measures)

    def sketches(self, statistics: StreamStatistics) -> dict[frozenset[str], Sketch]:
        """The sketches after the job, oldest first."""
        counted = self.observation.get
        rows = float(counted["rows"])
        new = {
            key_set: Sketch(rows, float(counted[f"groups{index}"]))
            for index, key_set in enumerate(self.renewed if rows else ())
        }
        old = statistics.sketches
        return {key_set: old[key_set] for key_set in self.later if key_set in old} | new
