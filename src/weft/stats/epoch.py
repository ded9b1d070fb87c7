"""The statistics of a stream as planners of aggregate trees ask for them: for one epoch of n rows.

The Memory paper's cost (equations 1 and 2) takes n_R, the tuples of an epoch, and for every set of
attributes its groups g and Zipf exponent alpha; for weft an epoch is a fragment. Attributes are key
expressions, by their SQL. All sets can be asked for, intermediates of no query included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from weft.stats.statistics import Keys, StreamStatistics


@dataclass(frozen=True)
class EpochStatistics:
    """What is known of `tuples` rows of a stream; `sizes` are entry sizes, 1 where silent.

    >>> nothing = EpochStatistics(StreamStatistics.unknown(), tuples=5000)
    >>> nothing.groups(frozenset({"a"})), nothing.groups(frozenset({"a", "b"}))
    (100.0, 5000)
    """

    statistics: StreamStatistics
    tuples: float
    sizes: Mapping[Keys, float] = field(default_factory=dict)

    def groups(self, node: Keys) -> float:
        """The expected number of groups of a set."""
        return self.statistics.groups(node, self.tuples)

    def alpha(self, node: Keys) -> float:
        """The Zipf exponent of the frequencies of its groups."""
        return self.statistics.alpha(node)

    def entry_size(self, node: Keys) -> float:
        """What one entry of its table takes of the memory."""
        return self.sizes.get(node, 1.0)

    def tree_input(self, queries: Iterable[Keys], names: Mapping[str, str]) -> dict[str, Any]:
        """The input of `weft tree` (DESIGN section 1.4) for some sets, under names for the keys."""
        labels = {
            ",".join(sorted(names[key] for key in keys)): keys for keys in dict.fromkeys(queries)
        }
        return {
            "tuples": self.tuples,
            "queries": [label.split(",") if label else [] for label in labels],
            "groups": {label: self.groups(keys) for label, keys in labels.items()},
            "alpha": {label: self.alpha(keys) for label, keys in labels.items()},
            "entry_size": {
                label: self.sizes[keys] for label, keys in labels.items() if keys in self.sizes
            },
        }
