"""Which inputs of each aggregation join are early. A choice is kept in the checkpoint: streams publish by it, and a restart goes on with
it.

When the streams have drifted so far that another plan costs clearly less, a query *switches*: streams publish for both plans until the windows of the
next instant are complete by the new one. From then on it is the plan. So no instant is lost, and none is shown twice. Landmark windows
would never be complete: their inputs stay as they are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence

from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.joinagg.serving import Price
from weft.algebra.joinagg.sources import Source, source_of
from weft.optimizer.joinagg.choice import Choice
from weft.optimizer.joinagg.plans import Plan
from weft.optimizer.joinagg.possible import Fixed, fixed_inputs, nearest
from weft.optimizer.joinagg.published_sets import SetPrices
from weft.optimizer.joinagg.weft_cost import JoinLoad, choose_plan, weft_cost
from weft.runtime.checkpoint.storage import Storage, to_json
from weft.runtime.joinagg.loads import load_of
from weft.runtime.joinagg.matches.late_joins import LateJoin, LateJoins
from weft.runtime.joinagg.matches.possible import matchable
from weft.runtime.joinagg.serving import Serving, apart
from weft.runtime.settings import Settings
from weft.stats import StreamStatistics

_WORTH_IT = 0.7
"""By which factor another plan must cost less before a query switches."""
Switching = tuple[Plan, Plan | None]
"""The plan of a query, and the one that it is switching to."""


class Choices:
    """The plans of aggregation joins."""

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
        self.serving = Serving(storage, f"streams/{log}/sets.json", self._price_of_sets)
        # Tasks join all inputs at instants.
        late_joins = "instants" if settings.kernel == "lanes" else settings.late_joins
        path = f"streams/{log}/matches.json"
        self._late_joins = LateJoins(storage, path, late_joins, self._known_load)
        self._version = 0
        self._lock = threading.Lock()
        self._chosen: dict[str, Switching] | None = None

    def _price_of_sets(self) -> Price:
        settings = self._settings
        return SetPrices(self._statistics, settings.passes).price if settings.finer_sets else apart

    def plans(self, query: AggregationJoin) -> Switching:
        """Of every input whether it is aggregated before the join, and what the query is switching to."""
        with self._lock:
            chosen = self._known()
            if query.id not in chosen:
                self._put(query, (self._choose(query), None))
            return chosen[query.id]

    @property
    def version(self) -> int:
        """How often a choice has changed."""
        return self._version + self._late_joins.version

    def matched(self, query: AggregationJoin) -> tuple[int, ...]:
        """The late inputs that the network joins; none: all inputs are joined at instants."""
        return self._late_joins.of(query, self.plans(query)[0]).slots

    def late_join(self, query: AggregationJoin) -> LateJoin:
        """The same with the reason, if it cannot; nothing is chosen for good."""
        return self._late_joins.of(query, self.planned(query), fixed=False)

    def join_at_instants(self, query_id: str, why: str) -> None:
        """The network cannot join the late inputs of a query."""
        self._late_joins.refuse(query_id, why)

    def planned(self, query: AggregationJoin) -> Plan:
        """Of every input whether it is early, or would be; nothing is chosen for good."""
        with self._lock:
            known = self._known().get(query.id)
            return known[0] if known is not None else self._choose(query)

    @property
    def forced(self) -> bool:
        """Whether a setting chooses."""
        return self._settings.early != "auto"

    def reconsider(self, query: AggregationJoin, joined: float | None = None) -> bool:
        """Begin to switch if another plan costs clearly less by now; whether the query switches, or its late inputs are joined in
        another way. `joined`: how many entries of its late inputs are joined at an instant, if they are counted."""
        plan, following = self.plans(query)
        if following is None and self._late_joins.reconsider(query, plan, joined):
            return True
        if self.forced or following is not None or not self._rates_measured(query):
            return False
        load = self._load(query)
        fixed = self._early_if_unknown(query, _without_landmarks(query, plan))
        best = choose_plan(load, fixed).best
        if best.plan == plan or best.cost >= _WORTH_IT * weft_cost(load, plan):
            return False
        with self._lock:
            self._put(query, (plan, best.plan))
        return True

    def settle(self, query: AggregationJoin) -> None:
        """The query has switched."""
        with self._lock:
            _, following = self._known()[query.id]
            if following is not None:
                self._put(query, (following, None))

    def provider(self, source: Source) -> Source | None:
        """The set that is published for an early input."""
        return self.serving.provider(source.id)

    def keep_sets(self, needed: Collection[str]) -> None:
        """Forget which sets are published for early inputs other than these."""
        self.serving.keep(needed)

    def _load(self, query: AggregationJoin) -> JoinLoad:
        """What the inputs of a query hold; where nothing is known of them, the network does not join them."""
        by_cost = self._settings.late_joins == "auto" and self._all_known(query)
        return load_of(query, self._statistics, matchable(query) if by_cost else frozenset())

    def _known_load(self, query: AggregationJoin) -> JoinLoad | None:
        """What the inputs of a query hold, if that is measured."""
        return self._load(query) if self._all_known(query) else None

    def _all_known(self, query: AggregationJoin) -> bool:
        slots = range(len(query.inputs))
        return self._rates_measured(query) and not any(self._unknown(query, s) for s in slots)

    def _rates_measured(self, query: AggregationJoin) -> bool:
        streams = {entry.relation for entry in query.inputs if entry.window is not None}
        return all(self._statistics(name).rate.source != "assumed" for name in streams)

    def _early_if_unknown(self, query: AggregationJoin, fixed: Fixed) -> Fixed:
        """What is fixed, and early all inputs of whose rows or groups nothing is known. A set is never larger than the rows, so an
        early plan takes at most two or three times as long as a late one, while a late plan may take hundreds of times as long as
        an early one."""
        return tuple(
            True if must is None and self._unknown(query, slot) else must
            for slot, must in enumerate(fixed)
        )

    def _unknown(self, query: AggregationJoin, slot: int) -> bool:
        entry = query.inputs[slot]
        if entry.window is None:
            return False
        stream = self._statistics(entry.relation)
        keys = [attribute.value.sql for attribute in source_of(query, slot).attributes]
        return "assumed" in (stream.rate.source, stream.estimate(keys, 1.0).source)

    def _put(self, query: AggregationJoin, plans: Switching) -> None:
        chosen = self._known()
        chosen[query.id] = plans
        self._version += 1
        self._storage.put(self._path, to_json(chosen))

    def _known(self) -> dict[str, Switching]:
        if self._chosen is None:
            exists = self._storage.exists(self._path)
            body = self._storage.read_json(self._path) if exists else {}
            self._chosen = {
                name: (tuple(plan), None if following is None else tuple(following))
                for name, (plan, following) in body.items()
            }
        return self._chosen

    def _choose(self, query: AggregationJoin) -> Plan:
        wanted, fixed = self._settings.early, fixed_inputs(query)
        assert fixed is not None, "registration refuses queries without a plan"
        if wanted == "auto":
            known = self._early_if_unknown(query, fixed)
            return choose_plan(self._load(query), known).best.plan
        inputs = len(query.inputs)
        bits = (wanted == "all",) * inputs if isinstance(wanted, str) else tuple(wanted)
        return nearest((bits + (True,) * inputs)[:inputs], fixed)

    def priced(self, query: AggregationJoin) -> Choice:
        """All plans of a query, with what they cost by what is known now."""
        fixed = fixed_inputs(query)
        assert fixed is not None
        return choose_plan(self._load(query), fixed)

    def sources(
        self,
        queries: Sequence[AggregationJoin],
        stream: str,
        *,
        early: bool,
        fixed: bool = True,
    ) -> list[Source]:
        """What a stream publishes for the early or the late inputs of queries, each once. Unless `fixed`, nothing is
        chosen for good."""
        sources = self._needed(queries, stream, early=early, fixed=fixed)
        return self.serving.published(sources, fixed=fixed) if early else sources

    def served(self, queries: Sequence[AggregationJoin], stream: str) -> dict[str, Source]:
        """By early input of a stream, the set that is published for it, or would be."""
        sources = self._needed(queries, stream, early=True, fixed=False)
        return self.serving.providers(sources, fixed=False)

    def _needed(
        self, queries: Sequence[AggregationJoin], stream: str, *, early: bool, fixed: bool
    ) -> list[Source]:
        sources: dict[str, Source] = {}
        for query in queries:
            plans = self.plans(query) if fixed else (self.planned(query),)
            for slot, entry in enumerate(query.inputs):
                if entry.relation == stream and any(p and p[slot] == early for p in plans):
                    source = source_of(query, slot)
                    sources[source.id] = source
        return [sources[name] for name in sorted(sources)]


def _without_landmarks(query: AggregationJoin, plan: Plan) -> Fixed:
    """What a switch must leave as it is."""
    fixed = fixed_inputs(query)
    assert fixed is not None
    return tuple(
        plan[slot] if entry.window is not None and entry.window.kind == "landmark" else fixed[slot]
        for slot, entry in enumerate(query.inputs)
    )
