"""What a step of aggregation joins leaves: the files that may still count, in few enough pieces.

Panes that no instant to come needs are gone. Panes of landmark windows stay for ever; those that nobody tells apart any more are folded into
one when their stream's files are written anew, so they grow with the keys and not with time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from weft.kernel.joinagg.panes import Panes
from weft.runtime.checkpoint.commits import RETAINED, STATE, Commit, Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.joinagg import statefiles
from weft.runtime.joinagg.inputs import Inputs
from weft.runtime.joinagg.matches.held import of_matches
from weft.runtime.joinagg.results import QueryResult
from weft.runtime.joinagg.served import Key
from weft.runtime.planning.versions import ALWAYS
from weft.runtime.protocol.step import StepWork


class Computed(Protocol):
    """As much of a step's outcome as is kept."""

    @property
    def panes(self) -> Mapping[Key, Panes]: ...
    @property
    def results(self) -> Mapping[str, QueryResult]: ...
    @property
    def landmarks(self) -> Mapping[str, Mapping[str, int]]: ...


def horizons_of(last: Commit | None) -> dict[Key, int]:
    """By source, the time up to which panes are gone, after the last commit."""
    return {(kind, name): end for kind, name, end in (last.engine["horizons"] if last else ())}


def folded_until(last: Commit | None) -> dict[Key, int]:
    """By source, the time up to which panes are folded, after the last commit: only landmark windows can read these."""
    return {
        (kind, name): end for kind, name, end in (last.engine.get("folded", ()) if last else ())
    }


@dataclass(frozen=True)
class Kept:
    """The live files after a step, those to be deleted, and what is left in memory."""

    state: tuple[Entry, ...]
    retained: tuple[Entry, ...]
    dead: tuple[Entry, ...]
    panes: Mapping[Key, Panes]


Rewrite = Callable[[Sequence[Key], Sequence[Entry], Mapping[Key, int]], list[Entry]]
"""Given keys, files that hold something of them, and by key the time up to which it is gone: new files."""


@dataclass
class Keeping:
    """Decides what stays."""

    log: StreamLog
    work: StepWork
    inputs: Inputs
    marks: Mapping[str, int]
    """By query, the time up to which it is evaluated."""
    last: Commit | None
    outcome: Computed
    rewrite: Rewrite | None = None
    """Writes files anew elsewhere; None: here, from what is in memory."""
    horizons: Mapping[Key, int] = field(init=False)
    folded: dict[Key, int] = field(init=False)
    """By source, the time up to which panes are folded."""

    def __post_init__(self) -> None:
        self.horizons = self.inputs.horizons(self.marks, horizons_of(self.last))
        before = folded_until(self.last)
        self.folded = {key: before[key] for key in self.inputs.sources if key in before}

    def kept(self, consumed: Sequence[Entry]) -> Kept:
        live = self.last.live if self.last else {}
        old_state = [entry for entry in live.get(STATE, ()) if not of_matches(entry)]
        of_panes = [entry for entry in old_state if "source" in entry]
        before = [entry for entry in live.get(RETAINED, ()) if not of_matches(entry)]
        published = [*before, *consumed]
        entries = statefiles.needed([*of_panes, *published], self.inputs, self.horizons)
        panes = {key: held.after(self.horizons[key]) for key, held in self.outcome.panes.items()}
        files = statefiles.StepFiles(self.log, f"{self.work.name}-{self.work.attempt}")
        for relation in statefiles.crowded(entries):
            entries, panes = self._written_anew(files, relation, entries, panes)
        state = [entry for entry in entries if "relation" not in entry]
        state += self._results(files, old_state)
        names = {entry["name"] for entry in state}
        return Kept(
            tuple(state),
            tuple(entry for entry in entries if "relation" in entry),
            tuple(entry for entry in old_state if entry["name"] not in names),
            panes,
        )

    def _written_anew(
        self,
        files: statefiles.StepFiles,
        relation: str,
        entries: Sequence[Entry],
        panes: Mapping[Key, Panes],
    ) -> tuple[list[Entry], dict[Key, Panes]]:
        """One file for each source of a stream, in place of all that hold something of it."""
        keys = [key for key, s in self.inputs.sources.items() if s.relation == relation]
        kept = [
            entry
            for entry in entries
            if entry.get("relation") != relation and tuple(entry.get("source", ())) not in keys
        ]
        for key in keys:
            until = _folds_until(key, self.inputs, self.marks)
            if until is not None:
                self.folded[key] = max(until, self.folded.get(key, ALWAYS))
        folded = dict(panes)
        if self.rewrite is not None:
            written = [entry for entry in entries if entry not in kept]
            return [*kept, *self.rewrite(keys, written, self.horizons)], folded
        for key in keys:
            folded[key] = folded_panes(
                panes[key], key, self.inputs, self.marks, self.outcome.landmarks
            )
            if len(folded[key]):
                kept.append(files.panes(key, folded[key], self.inputs))
        return kept, folded

    def _results(self, files: statefiles.StepFiles, old: Sequence[Entry]) -> list[Entry]:
        """The last results of queries that emit changes."""
        earlier = {entry["result_of"]: entry for entry in old if "result_of" in entry}
        entries: list[Entry] = []
        for number, (query, result) in enumerate(self.outcome.results.items()):
            if result.last is None:
                continue
            if not result.instants and query in earlier:
                entries.append(earlier[query])
            else:
                entries.append(files.result(query, number, result.last))
        return entries


def folded_panes(
    panes: Panes,
    key: Key,
    inputs: Inputs,
    marks: Mapping[str, int],
    landmarks_of: Mapping[str, Mapping[str, int]],
) -> Panes:
    """The panes of landmark windows that nobody tells apart any more, as one."""
    until, source = _folds_until(key, inputs, marks), inputs.sources[key]
    if until is None:
        return panes
    landmarks = [use for use in inputs.by_key[key] if use.window.kind == "landmark"]
    edges = [landmarks_of[use.query.id][str(use.slot)] for use in landmarks]
    return panes.folded(until, [ALWAYS, *edges], source.partials(inputs.stream(source)))


def _folds_until(key: Key, inputs: Inputs, marks: Mapping[str, int]) -> int | None:
    """The time up to which the panes of a source are not told apart any more; None if no landmark window keeps them."""
    uses = inputs.by_key[key]
    if all(use.window.kind != "landmark" for use in uses):
        return None
    return min(
        marks[use.query.id] if use.window.kind == "landmark" else use.horizon(marks[use.query.id])
        for use in uses
    )
