"""The matches that are kept: in memory, and in the files that the network has published or that were written anew.

A file stays as long as one of its matches may count. When a query has many files, what they hold is written anew as one.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from weft.algebra.joinagg.matches import PUBLISHED_MATCHES
from weft.algebra.joinagg.query import AggregationJoin
from weft.algebra.query import StreamSchema
from weft.kernel.joinagg.matched import Matches, counting_after, matches_of
from weft.runtime.checkpoint.commits import RETAINED, STATE, Commit, Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.joinagg.statefiles import MOST_FILES, read

NETWORK: Final = "@network"
"""The log of the network."""
_OF: Final = "matches"
"""What the entries of these files have: the network's query for these matches."""
_ENDING: Final = f"-{PUBLISHED_MATCHES}"


def of_matches(entry: Entry) -> bool:
    """Whether a file of a commit holds matches."""
    return _OF in entry


def consumed_matches(entries: Sequence[Entry]) -> list[Entry]:
    """Files that the network has published, as the follower's commit names them."""
    names = {e["publication"] for e in entries if e["publication"].endswith(_ENDING)}
    of_name = {name: name[1:].removesuffix(_ENDING) for name in names}
    return [
        {**entry, "relation": NETWORK, _OF: of_name[entry["publication"]]}
        for entry in entries
        if entry["publication"] in names
    ]


@dataclass(frozen=True)
class Opened:
    """The matches of a step by the network's query for them, and the files that they are in, with the last instant of each (`until`)."""

    matches: Mapping[str, Matches] = field(default_factory=dict)
    files: tuple[Entry, ...] = ()
    queries: Mapping[str, AggregationJoin] = field(default_factory=dict)
    """The aggregation joins that they are for."""


@dataclass(frozen=True)
class KeptMatches:
    """What stays after a step."""

    state: tuple[Entry, ...]
    retained: tuple[Entry, ...]
    dead: tuple[Entry, ...]
    matches: Mapping[str, Matches]


class HeldMatches:
    """Keeps matches from step to step."""

    def __init__(self, log: StreamLog) -> None:
        self._log = log
        self._committed: dict[str, Matches] | None = None
        """What is in memory after the last commit; None before anything is read."""

    def opened(
        self,
        queries: Mapping[str, AggregationJoin],
        streams: Mapping[str, StreamSchema],
        last: Commit | None,
        new: Sequence[Entry],
    ) -> Opened:
        """The matches that a step reads, with those of new files. `queries`: by the network's query, the aggregation join that they are for."""
        old = [entry for entry in _files(last) if entry[_OF] in queries]
        held = self._committed
        if held is None or not {entry[_OF] for entry in old} <= held.keys():
            held = self._together({}, old, queries, streams)[0]
            self._committed = held
        known = {name: matches for name, matches in held.items() if name in queries}
        wanted = [entry for entry in new if entry[_OF] in queries]
        matches, added = self._together(known, wanted, queries, streams)
        return Opened(matches, (*old, *added), queries)

    def _together(
        self,
        held: Mapping[str, Matches],
        files: Sequence[Entry],
        queries: Mapping[str, AggregationJoin],
        streams: Mapping[str, StreamSchema],
    ) -> tuple[dict[str, Matches], list[Entry]]:
        found: dict[str, list[Matches]] = {}
        described: list[Entry] = []
        for entry in files:
            name = entry[_OF]
            made = matches_of(read(self._log.storage, entry), queries[name], streams)
            until = int(made.last.max()) if len(made) else 0
            described.append({**entry, "until": until})
            found.setdefault(name, []).append(made)
        together = dict(held)
        for name, parts in found.items():
            first, *others = [*([held[name]] if name in held else []), *parts]
            together[name] = first.together(others)
        return together, described

    def kept(
        self,
        opened: Opened,
        marks: Mapping[str, int],
        needed: Collection[str],
        last: Commit | None,
        folder: str,
    ) -> KeptMatches:
        """What may still count. `marks`: by aggregation join, up to which time it is evaluated; `needed`: what the network still finds."""
        mark_of = {name: marks[query.id] for name, query in opened.queries.items()}
        files = [f for f in opened.files if f[_OF] in needed and f["until"] > mark_of[f[_OF]]]
        by_query: dict[str, list[Entry]] = {}
        for entry in files:
            by_query.setdefault(entry[_OF], []).append(entry)
        kept: list[Entry] = []
        for number, (name, of_query) in enumerate(by_query.items()):
            if len(of_query) > MOST_FILES:
                target = f"{folder}/matches-{number}"
                of_query = [self._written_anew(opened, name, of_query, mark_of[name], target)]
            kept += of_query
        names = {entry["name"] for entry in kept}
        state = last.live.get(STATE, ()) if last is not None else ()
        return KeptMatches(
            tuple(entry for entry in kept if "relation" not in entry),
            tuple(entry for entry in kept if "relation" in entry),
            tuple(e for e in state if of_matches(e) and e["name"] not in names),
            {
                name: matches.after(mark_of[name])
                for name, matches in opened.matches.items()
                if name in by_query
            },
        )

    def _written_anew(
        self, opened: Opened, name: str, files: Sequence[Entry], mark: int, target: str
    ) -> Entry:
        """One file in place of several, with the matches that count after a time."""
        query = opened.queries[name]
        tables = [counting_after(mark, read(self._log.storage, entry), query) for entry in files]
        path = f"{self._log.folder('state')}/{target}.parquet"
        written = self._log.storage.write_table(path, pa.concat_tables(tables))
        return {**written, _OF: name, "until": max(entry["until"] for entry in files)}

    def committed(self, matches: Mapping[str, Matches]) -> None:
        self._committed = dict(matches)


def _files(last: Commit | None) -> list[Entry]:
    live = last.live if last is not None else {}
    return [
        entry for kind in (STATE, RETAINED) for entry in live.get(kind, ()) if of_matches(entry)
    ]
