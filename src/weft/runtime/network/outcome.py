"""What a step of the network gives, wherever it was computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from weft.algebra.frozen import FrozenMapping
from weft.kernel.network import State
from weft.kernel.network.passing import Counters
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.network.backfill import Backfill


@dataclass(frozen=True)
class NetworkOutcome:
    """The matches of a step, and the files of history that it has written."""

    families: Mapping[str, Sequence[pa.Table]]
    history: Sequence[Entry]
    """Rows of joins that feed other joins, and hashes of rows that DISTINCT queries have shown."""
    counters: Counters
    published: Sequence[Entry] = ()
    """Files with rows of derived streams."""
    written: Sequence[Entry] = ()
    """Result files that tasks have written."""
    state: State | None = None
    """On the driver: the history in memory after the step."""
    buckets: Sequence[Entry] = ()
    """In tasks: all bucket files after the step."""
    layouts: Mapping[str, str] = FrozenMapping()
    """In tasks: what the bucket files of every input hold."""
    lane_seconds: Mapping[int, float] = FrozenMapping()
    """In tasks: how long each lane took."""
    backfill: Backfill = field(default_factory=Backfill)
    """What queries see of the time before their registration."""

    def then(self, later: NetworkOutcome) -> NetworkOutcome:
        """The outcome of a step of which this was the first part."""
        families = {name: list(tables) for name, tables in self.families.items()}
        for name, tables in later.families.items():
            families.setdefault(name, []).extend(tables)
        counters = Counters()
        for part in (self, later):
            counters.add(part.counters)
        return replace(
            later,
            families=families,
            history=(*self.history, *later.history),
            counters=counters,
            lane_seconds={
                lane: self.lane_seconds.get(lane, 0.0) + later.lane_seconds.get(lane, 0.0)
                for lane in {**self.lane_seconds, **later.lane_seconds}
            },
            written=(*self.written, *later.written),
        )

    @property
    def rows(self) -> int:
        tables = [table for tables in self.families.values() for table in tables]
        return sum(int(t.num_rows) for t in tables) + sum(int(e["rows"]) for e in self.written)
