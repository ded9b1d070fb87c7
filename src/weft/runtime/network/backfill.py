"""Queries that see what history holds when they are added (docs/decisions/0018).

History is the published files that joins of other queries need. A file is of use to a new query if it has all
columns that the query reads; the steps of these files are what the query sees of the time before its
registration. The first step with the query runs the query's own part of the network over these files, as if
their rows were new; no other query shows anything of them. The rows of joins that this makes become history,
and the step goes on like any other. So one commit has all of it or nothing.

Steps that were published before the registration, and are consumed after that step, are seen if their files
are of use, too. What a query sees is kept in the commits until the rows are gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc

from weft.algebra.network.bits import bits_of
from weft.algebra.network.plan import NetworkPlan
from weft.algebra.network.sets import NetworkQuery
from weft.kernel.network.rows import STEP, Seen
from weft.runtime.checkpoint.commits import RETAINED, STATE, Commit, Edition, Entry
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.network.history import Published, kind_of
from weft.runtime.network.publication import serves

SECTION = "backfill"
"""The part of the network's section of a commit."""

Turns = tuple[int, ...]
"""Steps, in turns the first one of some and the first one that is no longer among them."""


@dataclass(frozen=True)
class Consumed:
    """A file that a step consumes, and the queries that it was published for."""

    file: Published
    edition: Edition


@dataclass(frozen=True)
class Backfill:
    """What queries see of the time before their registration, as of a step."""

    done: tuple[str, ...] = ()
    """The queries that have seen what history held when they were added. One that is brought back does not
    see it again."""
    seen: Mapping[str, Mapping[str, Turns]] = field(default_factory=dict)
    """By query and stream, the steps before those that were published for it."""
    added: tuple[str, ...] = ()
    """The queries that begin with this step."""
    files: tuple[Published, ...] = ()
    """The files of history that they see."""

    def steps(self, query_id: str, relation: str, first: int | None) -> Seen | None:
        """All steps of a stream that a query sees, if it has a backfill; `first`: from which on they are
        published for it."""
        if query_id not in self.seen:
            return None
        turns = self.seen[query_id].get(relation, ())
        if first is None:
            return turns
        return turns[:-1] if turns and turns[-1] == first else (*turns, first)

    def section(self, oldest: Mapping[str, int]) -> dict[str, Any]:
        """For the commit. `oldest`: by stream the step of the oldest row in history."""
        return {
            "done": [*self.done, *self.added],
            "seen": {
                query: {
                    relation: list(_from(turns, oldest[relation])) if relation in oldest else []
                    for relation, turns in of_query.items()
                }
                for query, of_query in self.seen.items()
            },
        }


def waiting(queries: Iterable[NetworkQuery], last: Commit | None) -> list[NetworkQuery]:
    """The queries with backfill that have not seen what history holds. Without a step there is none."""
    if last is None:
        return []
    done = last.engine.get(SECTION, {}).get("done", ())
    return [query for query in queries if query.backfill and query.id not in done]


def backfill_of(
    storage: Storage, plan: NetworkPlan, last: Commit | None, consumed: Sequence[Consumed]
) -> Backfill:
    """The backfill of a step with a plan, which consumes some files."""
    queries = {query.id: query for query in plan.queries if query.backfill}
    if not queries:
        return Backfill(done=_done(last))
    section = last.engine.get(SECTION, {}) if last is not None else {}
    seen: dict[str, dict[str, set[int]]] = {
        query_id: {relation: set(_listed(turns)) for relation, turns in of_query.items()}
        for query_id, of_query in section.get("seen", {}).items()
        if query_id in queries
    }
    added = [query_id for query_id in queries if query_id not in _done(last)]
    seen |= {query_id: {} for query_id in added}
    columns = _Columns(storage)
    files: dict[str, Published] = {}
    for entry in _history(last) if added else ():
        steps: set[int] | None = None
        for query_id in added:
            if columns.serve(entry, queries[query_id], entry["relation"]):
                steps = columns.steps(entry) if steps is None else steps
                seen[query_id].setdefault(entry["relation"], set()).update(steps)
                files[entry["name"]] = Published.kept(entry)
    for one in consumed:
        relation = one.file.relation
        for query_id in seen:
            before = not serves(one.edition, query_id)
            if before and columns.serve(one.file.entry, queries[query_id], relation):
                seen[query_id].setdefault(relation, set()).add(one.file.sequence)
    return Backfill(
        _done(last),
        {
            query_id: {relation: turns_of(steps) for relation, steps in of_query.items()}
            for query_id, of_query in seen.items()
        },
        tuple(added),
        tuple(files.values()),
    )


def _done(last: Commit | None) -> tuple[str, ...]:
    return tuple(last.engine.get(SECTION, {}).get("done", ())) if last is not None else ()


def _history(last: Commit | None) -> list[Entry]:
    """The files of history that have rows of streams."""
    live = last.live if last is not None else {}
    entries = (*live.get(RETAINED, ()), *live.get(STATE, ()))
    return [entry for entry in entries if kind_of(entry)[0] == "relation"]


class _Columns:
    """What files have: their columns, and the steps of their rows."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._names: dict[str, frozenset[str]] = {}

    def serve(self, entry: Entry, query: NetworkQuery, relation: str) -> bool:
        """Whether a file of a stream has all columns that a query reads."""
        if relation not in query.relations:
            return False
        bits = {bit.name for bit in bits_of(query, relation)}
        return query.columns_of(relation) | bits <= self._of(entry)

    def _of(self, entry: Entry) -> frozenset[str]:
        name = entry["name"]
        if name not in self._names:
            with self._storage.reading(name) as file:
                self._names[name] = frozenset(file.schema_arrow.names)
        return self._names[name]

    def steps(self, entry: Entry) -> set[int]:
        """The steps that the rows of a file of history came with."""
        if "sequence" in entry:
            return {entry["sequence"]}
        with self._storage.reading(entry["name"]) as file:
            batches = file.iter_batches(columns=[STEP])
            return {step for batch in batches for step in pc.unique(batch.column(0)).to_pylist()}


def turns_of(steps: Iterable[int]) -> Turns:
    """Steps as turns.

    >>> turns_of({1, 2, 3, 5})
    (1, 4, 5, 6)
    """
    turns: list[int] = []
    for step in sorted(steps):
        if turns and turns[-1] == step:
            turns[-1] = step + 1
        else:
            turns += [step, step + 1]
    return tuple(turns)


def _listed(turns: Sequence[int]) -> Iterable[int]:
    for first, end in zip(turns[::2], turns[1::2], strict=True):
        yield from range(first, end)


def _from(turns: Turns, oldest: int) -> Turns:
    return turns_of(step for step in _listed(turns) if step >= oldest)
