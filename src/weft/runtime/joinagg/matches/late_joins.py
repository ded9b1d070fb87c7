"""Which late inputs of each aggregation join the query network joins: what the setting says, or what pays. A choice is kept in the
checkpoint, with the plan that it is for; it is chosen anew for another plan, and when the streams have drifted.

Where the network cannot join them, for example because there are more matches than one step may have, the inputs are joined at instants from then on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

from weft.algebra.joinagg.query import AggregationJoin
from weft.optimizer.joinagg.plans import Plan
from weft.optimizer.joinagg.weft_cost import JoinLoad, saved_by_matches, weft_cost
from weft.runtime.checkpoint.storage import Storage, to_json
from weft.runtime.joinagg.matches.possible import matching_slots

_WORTH_IT = 0.3
"""Which part of the cost of a plan it must save, or lose, before it is chosen anew."""


@dataclass(frozen=True)
class LateJoin:
    """What the network joins of a plan by a setting; nothing: it is joined at instants. `refused`: why it always is."""

    plan: Plan
    setting: str
    slots: tuple[int, ...] = ()
    refused: str = ""

    @property
    def is_stored(self) -> bool:
        return bool(self.slots or self.refused)


class LateJoins:
    """The choice for each aggregation join."""

    def __init__(
        self,
        storage: Storage,
        path: str,
        setting: str,
        load: Callable[[AggregationJoin], JoinLoad | None],
    ) -> None:
        """`load`: what inputs hold; None if too little is known of them."""
        self._storage, self._path = storage, path
        self._setting, self._load = setting, load
        self._lock = threading.Lock()
        self._known: dict[str, LateJoin] | None = None
        self.version = 0
        """How often a choice has changed."""

    def of(self, query: AggregationJoin, plan: Plan, *, fixed: bool = True) -> LateJoin:
        """The choice for a query with a plan. Unless `fixed`, nothing is chosen for good."""
        with self._lock:
            known = self._read().get(query.id)
            if known is not None and known.refused:
                return known
            if known is not None and (known.plan, known.setting) == (plan, self._setting):
                return known
            chosen = LateJoin(plan, self._setting, self._chosen(query, plan))
            if fixed:
                self._put(query.id, chosen)
            return chosen

    def refuse(self, query_id: str, why: str) -> None:
        """The network cannot join the inputs of a query."""
        with self._lock:
            known = self._read().get(query_id)
            plan = known.plan if known is not None else ()
            self._put(query_id, LateJoin(plan, self._setting, (), why))

    def reconsider(self, query: AggregationJoin, plan: Plan, joined: float | None) -> bool:
        """Choose anew if much is gained; whether that changes the choice. `joined`: how many entries of all inputs are joined at an instant, if
        they are counted."""
        known = self.of(query, plan)
        load = self._load(query)
        possible = matching_slots(query, plan)
        if self._setting != "auto" or known.refused or load is None or not possible:
            return False
        counted = joined if len(possible) == len(query.inputs) else None
        saved = saved_by_matches(load, possible, counted) / weft_cost(load, plan)
        wanted = possible if saved > 0 else ()
        if wanted == known.slots or abs(saved) < _WORTH_IT:
            return False
        with self._lock:
            self._put(query.id, LateJoin(plan, self._setting, wanted))
        return True

    def _chosen(self, query: AggregationJoin, plan: Plan) -> tuple[int, ...]:
        possible = () if self._setting == "instants" else matching_slots(query, plan)
        if not possible or self._setting == "network":
            return possible
        load = self._load(query)
        pays = load is not None and saved_by_matches(load, possible) > 0
        return possible if pays else ()

    def _read(self) -> dict[str, LateJoin]:
        if self._known is None:
            exists = self._storage.exists(self._path)
            body = self._storage.read_json(self._path) if exists else {}
            self._known = {
                name: LateJoin(
                    _bits(form["plan"]), form["setting"], tuple(form["slots"]), form["refused"]
                )
                for name, form in body.items()
            }
        return self._known

    def _put(self, query_id: str, chosen: LateJoin) -> None:
        """Remember a choice. That of joins at instants, which most are, is not stored: after a restart it is made again."""
        known = self._read()
        stored = known.get(query_id, chosen)
        known[query_id] = chosen
        self.version += 1
        if stored.is_stored or chosen.is_stored:
            forms = {name: asdict(choice) for name, choice in known.items() if choice.is_stored}
            self._storage.put(self._path, to_json(forms))


def _bits(values: Sequence[object]) -> Plan:
    return tuple(bool(value) for value in values)
