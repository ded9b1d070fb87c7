"""Which inputs of each aggregation join are early. A choice is kept in the checkpoint: streams publish by it, and a restart goes on with
it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.sources import Source, source_of
from weft.algebra.query import StreamSchema
from weft.optimizer.joinagg.plans import Plan
from weft.runtime.checkpoint.storage import Storage, to_json
from weft.runtime.settings import Settings
from weft.stats import StreamStatistics


class Choices:
    """The plans of aggregation joins, each chosen once."""

    def __init__(
        self,
        storage: Storage,
        settings: Settings,
        statistics: Callable[[str], StreamStatistics],
        schemas: Callable[[], Mapping[str, StreamSchema]],
        log: str,
    ) -> None:
        self._storage, self._settings = storage, settings
        self._statistics, self._schemas = statistics, schemas
        self._path = f"streams/{log}/choices.json"
        self._lock = threading.Lock()
        self._chosen: dict[str, Plan] | None = None

    def early(self, query: AggregationJoin) -> Plan:
        """Of every input whether it is aggregated before the join."""
        with self._lock:
            chosen = self._known()
            if query.id not in chosen:
                chosen[query.id] = self._choose(query)
                self._storage.put(self._path, to_json(chosen))
            return chosen[query.id]

    def _known(self) -> dict[str, Plan]:
        if self._chosen is None:
            exists = self._storage.exists(self._path)
            body = self._storage.read_json(self._path) if exists else {}
            self._chosen = {name: tuple(bits) for name, bits in body.items()}
        return self._chosen

    def _choose(self, query: AggregationJoin) -> Plan:
        return (True,) * len(query.inputs)

    def sources(
        self, queries: Sequence[AggregationJoin], stream: str, *, early: bool
    ) -> list[Source]:
        """What the early or the late inputs of queries read of a stream, each once."""
        sources: dict[str, Source] = {}
        for query in queries:
            for slot, entry in enumerate(query.inputs):
                if entry.relation == stream and self.early(query)[slot] == early:
                    source = source_of(query, slot)
                    sources[source.id] = source
        return [sources[name] for name in sorted(sources)]
