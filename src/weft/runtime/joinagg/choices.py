"""Which inputs of each aggregation join are early. A choice is kept in the checkpoint: streams publish by it, and a restart goes on with
it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.sources import Source, source_of
from weft.optimizer.joinagg.choice import Choice
from weft.optimizer.joinagg.plans import Plan
from weft.optimizer.joinagg.possible import fixed_inputs, nearest
from weft.optimizer.joinagg.weft_cost import choose_plan
from weft.runtime.checkpoint.storage import Storage, to_json
from weft.runtime.joinagg.loads import load_of
from weft.runtime.settings import Settings
from weft.stats import StreamStatistics


class Choices:
    """The plans of aggregation joins, each chosen once."""

    def __init__(
        self,
        storage: Storage,
        settings: Settings,
        statistics: Callable[[str], StreamStatistics],
        log: str,
    ) -> None:
        self._storage, self._settings = storage, settings
        self._statistics = statistics
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

    def planned(self, query: AggregationJoin) -> Plan:
        """The same, without choosing for good."""
        with self._lock:
            return self._known().get(query.id) or self._choose(query)

    @property
    def forced(self) -> bool:
        """Whether a setting chooses."""
        return self._settings.early != "auto"

    def _known(self) -> dict[str, Plan]:
        if self._chosen is None:
            exists = self._storage.exists(self._path)
            body = self._storage.read_json(self._path) if exists else {}
            self._chosen = {name: tuple(bits) for name, bits in body.items()}
        return self._chosen

    def _choose(self, query: AggregationJoin) -> Plan:
        wanted, fixed = self._settings.early, fixed_inputs(query)
        assert fixed is not None, "registration refuses queries without a plan"
        if wanted == "auto":
            return choose_plan(load_of(query, self._statistics), fixed).best.plan
        inputs = len(query.inputs)
        bits = (wanted == "all",) * inputs if isinstance(wanted, str) else tuple(wanted)
        return nearest((bits + (True,) * inputs)[:inputs], fixed)

    def priced(self, query: AggregationJoin) -> Choice:
        """All plans of a query, with what they cost by what is known now."""
        fixed = fixed_inputs(query)
        assert fixed is not None
        return choose_plan(load_of(query, self._statistics), fixed)

    def sources(
        self,
        queries: Sequence[AggregationJoin],
        stream: str,
        *,
        early: bool,
        fixed: bool = True,
    ) -> list[Source]:
        """What the early or the late inputs of queries read of a stream, each once. Unless `fixed`, nothing is chosen
        for good."""
        plan_of = self.early if fixed else self.planned
        sources: dict[str, Source] = {}
        for query in queries:
            for slot, entry in enumerate(query.inputs):
                if entry.relation == stream and plan_of(query)[slot] == early:
                    source = source_of(query, slot)
                    sources[source.id] = source
        return [sources[name] for name in sorted(sources)]
