"""Which published set serves each early input: its own, or a finer one that pays. Kept in the checkpoint.

A source keeps its set as long as the follower's plan has it: what was published under another one could not be read any more. So a query that
comes later uses a set that is there if it can, and never changes the sets of others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence

from weft.algebra import codec
from weft.algebra.joinagg.serving import providers
from weft.algebra.joinagg.sources import Source
from weft.optimizer.joinagg.weft_cost import ENTRY
from weft.runtime.checkpoint.storage import Storage, to_json
from weft.stats import StreamStatistics

DERIVED = 0.2
"""Microseconds for an entry of a finer set that is added up to a coarser one."""
PUBLISHED_SET = 20_000.0
"""Microseconds of a step for one more set, however small: most often one more node of level 1, so a job or a part of one; and it is woven, written and read
by itself."""
_SECOND = 1_000_000


class Serving:
    """The published set of each early source."""

    def __init__(
        self, storage: Storage, path: str, statistics: Callable[[str], StreamStatistics], on: bool
    ) -> None:
        self._storage, self._path = storage, path
        self._statistics, self._on = statistics, on
        self._lock = threading.Lock()
        self._known: dict[str, Source] | None = None

    def published(self, sources: Sequence[Source], *, fixed: bool = True) -> list[Source]:
        """What is published for sources, each once. Unless `fixed`, nothing is decided for good."""
        chosen = self.providers(sources, fixed=fixed)
        distinct = {provider.id: provider for provider in chosen.values()}
        return [distinct[name] for name in sorted(distinct)]

    def providers(self, sources: Sequence[Source], *, fixed: bool = True) -> dict[str, Source]:
        """By source, what is published for it."""
        with self._lock:
            known = self._read()
            chosen = providers(sources, known, self._pays if self._on else _never)
            if fixed and not chosen.keys() <= known.keys():
                self._put({**known, **chosen})
            return chosen

    def provider(self, source_id: str) -> Source | None:
        """What is published for a source; None if nothing was decided."""
        with self._lock:
            return self._read().get(source_id)

    def served_by(self, set_id: str) -> list[str]:
        """The sources that a published set is for."""
        with self._lock:
            return [name for name, provider in self._read().items() if provider.id == set_id]

    def keep(self, needed: Collection[str]) -> None:
        """Forget all sources but these."""
        with self._lock:
            known = self._read()
            if not known.keys() <= set(needed):
                self._put({name: known[name] for name in known if name in needed})

    def _pays(self, finer: Source, source: Source) -> bool:
        """Whether adding up the entries of the finer set costs less than publishing one more."""
        if len(finer.attributes) == len(source.attributes):
            return True
        stream = self._statistics(source.relation)
        rows = stream.rate.value / _SECOND * source.pane
        if source.predicate is not None:
            rows *= stream.selectivity(source.predicate.sql).value

        def entries(of: Source) -> float:
            return stream.groups([a.value.sql for a in of.attributes], max(rows, 1.0))

        return DERIVED * entries(finer) <= PUBLISHED_SET + ENTRY * entries(source)

    def _put(self, known: dict[str, Source]) -> None:
        self._known = known
        sets = {provider.id: provider for provider in known.values()}
        body = {
            "sets": {name: codec.encode(provider) for name, provider in sets.items()},
            "served_by": {name: provider.id for name, provider in known.items()},
        }
        self._storage.put(self._path, to_json(body))

    def _read(self) -> dict[str, Source]:
        if self._known is None:
            if not self._storage.exists(self._path):
                self._known = {}
                return self._known
            body = self._storage.read_json(self._path)
            sets = {name: codec.decode(form) for name, form in body["sets"].items()}
            self._known = {name: sets[by] for name, by in body["served_by"].items()}
        return self._known


def _never(finer: Source, source: Source) -> bool:
    return False
