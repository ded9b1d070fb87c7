"""Which published set serves each early input: its own, or one that serves several where that pays. Kept in the checkpoint.

A source keeps its set as long as the follower's plan has it: what was published under another one could not be read any more. So a query that
comes later uses a set that is there if it can, and never changes the sets of others.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence

from weft.algebra import codec
from weft.algebra.joinagg.serving import Price, providers
from weft.algebra.joinagg.sources import Source
from weft.runtime.checkpoint.storage import Storage, to_json


def apart(provider: Source, served: Sequence[Source]) -> float:
    """The price by which every source has a set of its own."""
    return float(sum(provider != source for source in served))


class Serving:
    """The published set of each early source."""

    def __init__(
        self, storage: Storage, path: str, price: Callable[[], Price] = lambda: apart
    ) -> None:
        self._storage, self._path = storage, path
        self._price = price
        """By what is known now."""
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
            chosen = providers(sources, known, self._price())
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
