"""Statistics of streams: rate, groups and skew of key sets, selectivities. Pure; no Spark.

`working_set`, `extrapolation`, `bounds`, `frequencies` and `zipf` estimate from samples; `sample`
keeps the newest sampled rows, `statistics` answers from them, each answer an `estimate`. Collecting
samples on a running stream is the runtime's work (`runtime.planning.sampling`).
"""

from weft.stats.estimate import Basis, Estimate, Selectivity
from weft.stats.sample import JointSample
from weft.stats.statistics import Sketch, StreamStatistics

__all__ = [
    "Basis",
    "Estimate",
    "JointSample",
    "Selectivity",
    "Sketch",
    "StreamStatistics",
]
