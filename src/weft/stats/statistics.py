"""What is known of a stream: rate, groups and skew of key sets, selectivities.

An immutable value with a JSON form, advisory only: planning works with `StreamStatistics.unknown()`,
whose defaults are stated here. Predicates and keys are named by their canonical SQL.

`groups(keys, rows)` is the expected number of groups in `rows` rows of the stream. Raw estimates of
single sets come from the sample: up to its rows by `working_set`, beyond by `extrapolation`, through a
sketch where there is one. They are then made consistent, with h(S) the largest raw
estimate of a subset of S:

    G({}) = 1        G(S) = min(h(S), G(A) G(B) over all A, B that divide S, rows)

Sound: h grows with S, hence G does, by induction over |S| (a part of a division only loses keys, and
no factor is below 1); and G(S) <= G(A) G(B) for all A with B = S. Every part is monotone in rows.
Sets of more than eight keys are bounded by their largest single key and the product of all.
Keys that no sample has count as ASSUMED_GROUPS values each, independent of all others.

Time: 3^|S| steps, and for every subset one pass over the sample and one fit, remembered: about 5 ms
for each new set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import combinations
from math import prod
from types import MappingProxyType
from typing import Any

from weft.stats.bounds import between
from weft.stats.estimate import Estimate, Selectivity
from weft.stats.extrapolation import Growth, grown
from weft.stats.frequencies import Frequencies
from weft.stats.sample import JointSample
from weft.stats.working_set import WorkingSet
from weft.stats.zipf import fitted

ASSUMED_RATE = 1000.0
ASSUMED_GROUPS = 100.0
ASSUMED_ALPHA = 0.0
ASSUMED_SELECTIVITY = 0.5
FORMAT = 1
_MOST_DIVIDED = 8
_REMEMBERED = 256
"""Sets whose rows are remembered in order, at 160 KB each; their answers are all remembered."""

Keys = frozenset[str]


@dataclass(frozen=True, slots=True)
class Sketch:
    """How many groups `rows` consecutive rows had, by a sketch."""

    rows: float
    groups: float


@dataclass(frozen=True, eq=False)
class StreamStatistics:
    """The statistics of one stream.

    >>> nothing = StreamStatistics.unknown()
    >>> nothing.known, nothing.rate.source, nothing.groups(frozenset({"a", "b"}), 1e6)
    (False, 'assumed', 10000.0)
    """

    rate: Estimate = field(default_factory=lambda: Estimate(ASSUMED_RATE, "assumed"))
    rows: int = 0
    """Rows of the stream so far."""
    sample: JointSample = field(default_factory=JointSample)
    sketches: Mapping[Keys, Sketch] = field(default_factory=lambda: MappingProxyType({}))
    selectivities: Mapping[str, Selectivity] = field(default_factory=lambda: MappingProxyType({}))

    @staticmethod
    def unknown(rate: float = ASSUMED_RATE) -> StreamStatistics:
        """The statistics of a stream of which nothing is known."""
        return StreamStatistics(rate=Estimate(rate, "assumed"))

    @property
    def known(self) -> bool:
        """Whether anything is more than assumed."""
        return bool(self.rate.source != "assumed" or self.sample.rows or self.selectivities)

    def selectivity(self, predicate: str) -> Estimate:
        """The share of rows that a predicate keeps, by its SQL."""
        measured = self.selectivities.get(predicate)
        return measured.estimate if measured else Estimate(ASSUMED_SELECTIVITY, "assumed")

    def groups(self, keys: Iterable[str], rows: float) -> float:
        """The expected number of groups of a set of keys in `rows` >= 1 rows."""
        wanted = frozenset(keys)
        sampled = frozenset(key for key in wanted if self.sample.knows({key}))
        assumed = min(ASSUMED_GROUPS, rows) ** len(wanted - sampled)
        return min(self._consistent(sampled, rows) * assumed, rows)

    def estimate(self, keys: Iterable[str], rows: float) -> Estimate:
        """The same with where it comes from and how many rows are behind it."""
        wanted = frozenset(keys)
        seen = self.sample.seen(wanted)
        value = self.groups(wanted, rows)
        if not wanted:
            return Estimate(value, "measured", self.rows)
        if not seen:
            return Estimate(value, "assumed")
        sketch = self.sketches.get(wanted)
        if sketch is not None and rows > seen:
            return Estimate(value, "sketched", sketch.rows)
        return Estimate(value, "sampled", seen)

    def bounds(self, keys: Iterable[str], rows: float) -> tuple[float, float]:
        """The least and the most groups that the sample leaves possible (see `bounds`)."""
        wanted = frozenset(keys)
        seen = self.sample.seen(wanted)
        if not wanted or not seen:
            return 1.0, (rows if wanted else 1.0)
        if rows <= seen:
            exact = self.groups(wanted, rows)
            return exact, exact
        return between(self.groups(wanted, seen), seen, rows)

    def alpha(self, keys: Iterable[str]) -> float:
        """The Zipf exponent of a set of keys; 0 is uniform."""
        return self.skew(keys).value

    def skew(self, keys: Iterable[str]) -> Estimate:
        """The Zipf exponent with where it comes from."""
        wanted = frozenset(keys)
        seen = self.sample.seen(wanted)
        if not wanted or not seen:
            return Estimate(ASSUMED_ALPHA, "assumed")
        if wanted not in self._alphas:
            self._alphas[wanted] = fitted(Frequencies.of_values(self.sample.groups(wanted))).alpha
        return Estimate(self._alphas[wanted], "sampled", seen)

    def counted(self, metrics: Mapping[str, Any]) -> StreamStatistics:
        """The same with the `rows` so far and, once known, the `rate` that a commit counted."""
        rows = int(metrics.get("rows", 0))
        if "rate" not in metrics:
            return replace(self, rows=rows)
        return replace(self, rows=rows, rate=Estimate(float(metrics["rate"]), "measured", rows))

    def _consistent(self, keys: Keys, rows: float) -> float:
        if not keys:
            return min(1.0, rows)
        groups = self._groups.get((keys, rows))
        if groups is None:
            if len(keys) > _MOST_DIVIDED:
                single = [self._consistent(frozenset({key}), rows) for key in keys]
                groups = min(max(self._raw(keys, rows), *single), prod(single), rows)
            else:
                divided = [
                    self._consistent(left, rows) * self._consistent(right, rows)
                    for left, right in _divisions(keys)
                ]
                groups = min(self._largest(keys, rows), *divided, rows)
            self._groups[keys, rows] = groups
        return groups

    def _largest(self, keys: Keys, rows: float) -> float:
        """The largest raw estimate of any subset."""
        subsets = (frozenset(s) for n in range(1, len(keys) + 1) for s in combinations(keys, n))
        return max(self._raw(subset, rows) for subset in subsets)

    def _raw(self, keys: Keys, rows: float) -> float:
        """The estimate of one set alone; no bound if its keys were never sampled together."""
        groups = self._raws.get((keys, rows))
        if groups is None:
            groups = self._raws[keys, rows] = self._estimated(keys, rows)
        return groups

    def _estimated(self, keys: Keys, rows: float) -> float:
        seen = self.sample.seen(keys)
        if not seen or rows <= 1:
            return rows
        if rows <= seen:
            return self._working_sets(keys).groups(rows)
        if keys not in self._growths:
            sketch = self.sketches.get(keys)
            anchor = (sketch.rows, sketch.groups) if sketch is not None else None
            self._growths[keys] = grown(self._working_sets(keys), anchor)
        return self._growths[keys].groups(rows)

    @cached_property
    def _working_sets(self) -> Callable[[Keys], WorkingSet]:
        def working_set(keys: Keys) -> WorkingSet:
            return WorkingSet.of_values(self.sample.groups(keys))

        return lru_cache(_REMEMBERED)(working_set)

    @cached_property
    def _growths(self) -> dict[Keys, Growth]:
        return {}

    @cached_property
    def _alphas(self) -> dict[Keys, float]:
        return {}

    @cached_property
    def _raws(self) -> dict[tuple[Keys, float], float]:
        return {}

    @cached_property
    def _groups(self) -> dict[tuple[Keys, float], float]:
        return {}

    def to_json(self) -> dict[str, Any]:
        """All of it as values that `json.dumps` takes."""
        return {
            "format": FORMAT,
            "rate": self.rate.to_json(),
            "rows": self.rows,
            "sample": self.sample.to_json(),
            "sketches": [
                {"keys": sorted(keys), "rows": sketch.rows, "groups": sketch.groups}
                for keys, sketch in self.sketches.items()
            ],
            "selectivities": {
                sql: {"matched": selectivity.matched, "rows": selectivity.rows}
                for sql, selectivity in self.selectivities.items()
            },
        }

    @staticmethod
    def from_json(body: Mapping[str, Any]) -> StreamStatistics:
        """The statistics that `to_json` gave; raises KeyError or ValueError for anything else."""
        if body["format"] != FORMAT:
            raise ValueError(f"statistics of format {body['format']}, not {FORMAT}")
        sketches = {
            frozenset(sketch["keys"]): Sketch(float(sketch["rows"]), float(sketch["groups"]))
            for sketch in body["sketches"]
        }
        selectivities = {
            sql: Selectivity(float(selectivity["matched"]), float(selectivity["rows"]))
            for sql, selectivity in body["selectivities"].items()
        }
        return StreamStatistics(
            Estimate.from_json(body["rate"]),
            int(body["rows"]),
            JointSample.from_json(body["sample"]),
            MappingProxyType(sketches),
            MappingProxyType(selectivities),
        )


def _divisions(keys: Keys) -> Iterator[tuple[Keys, Keys]]:
    """All ways to divide a set into two parts, neither empty, each once."""
    first, *others = sorted(keys)
    for size in range(len(others)):
        for chosen in combinations(others, size):
            part = frozenset({first, *chosen})
            yield part, keys - part
