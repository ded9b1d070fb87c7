"""The list of all result files: which have expired, and which small ones become one.

Every commit names its own result files. From time to time a base lists all files up to a step,
so that older commits can go, many small files of a family become few, and files go whose results
are older than the setting `keep`. Replaced and expired files are deleted one base later, so that
a reader who listed them before can finish.

A list is in the order of its batches, and stays so: only neighbours are merged, and what they
become stands where the last of them stood.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from weft.kernel.windows.results import QUERY_COLUMN
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.sinks.store import results_folder, wall_clock

SMALL_FILE = 32 << 20
MERGE_AT_LEAST = 8
MERGED_SPAN = 10
"""A merged file holds results of at most this fraction of `keep`, so that none outlives it by
more."""


def tidied(
    checkpoint: Storage, entries: Sequence[Entry], prefix: str, keep: int | None
) -> tuple[list[Entry], list[Entry]]:
    """The list without expired files and with small ones merged, which are written now under names
    that begin with `prefix`; and what is to be deleted when nobody reads it any more."""
    kept, gone = split_expired(entries, wall_clock(), keep)
    merged = [
        (portion, merge_files(checkpoint, portion, prefix)) for portion in mergeable(kept, keep)
    ]
    gone += [entry for portion, _ in merged for entry in portion]
    return with_merged(kept, merged), [{"root": e["root"], "name": e["name"]} for e in gone]


def split_expired(
    entries: Sequence[Entry], now: int, keep: int | None
) -> tuple[list[Entry], list[Entry]]:
    """The files to keep, and those whose results were all written longer ago than `keep`.

    >>> files = [{"name": "a", "written": 10}, {"name": "b", "written": 60}, {"name": "c"}]
    >>> kept, expired = split_expired(files, now=100, keep=50)
    >>> [file["name"] for file in kept], [file["name"] for file in expired]
    (['b', 'c'], ['a'])
    """
    if keep is None:
        return list(entries), []
    kept: list[Entry] = []
    expired: list[Entry] = []
    for entry in entries:
        written = entry.get("written")
        (kept if written is None or written >= now - keep else expired).append(entry)
    return kept, expired


def mergeable(entries: Sequence[Entry], keep: int | None = None) -> list[list[Entry]]:
    """Runs of small neighbours of one family and folder that together make a file of bounded
    size, and of a bounded span of time if results expire."""
    runs: dict[tuple[str, str], list[Entry]] = {}
    ended: list[list[Entry]] = []
    for entry in entries:
        family = (entry["root"], entry["family"])
        run = runs.setdefault(family, [])
        if run and not _fits(run, entry, keep):
            ended.append(run)
            run = runs[family] = []
        if entry["size"] < SMALL_FILE:
            run.append(entry)
    return [run for run in [*ended, *runs.values()] if len(run) >= MERGE_AT_LEAST]


def _fits(run: Sequence[Entry], entry: Entry, keep: int | None) -> bool:
    if entry["size"] >= SMALL_FILE:
        return False
    if sum(held["size"] for held in run) + entry["size"] > 4 * SMALL_FILE:
        return False
    if keep is None:
        return True
    first, last = _first_written(run[0]), entry.get("written")
    if first is None or last is None:
        return first is None and last is None
    return bool(last - first <= keep / MERGED_SPAN)


def _first_written(entry: Entry) -> int | None:
    """When the oldest results of a file were written; None for a file of an older weft."""
    written: int | None = entry.get("first_written", entry.get("written"))
    return written


def merge_files(checkpoint: Storage, portion: Sequence[Entry], prefix: str) -> Entry:
    """Write one file for many, each query's rows together and in the order of their batches."""
    root, family = portion[0]["root"], portion[0]["family"]
    storage = Storage(results_folder(checkpoint, root))
    table = pa.concat_tables([storage.read_table(entry["name"]) for entry in portion])
    first, last = portion[0]["batch"], portion[-1]["batch"]
    file = f"{family}/{prefix}~{first}~{last}.parquet"
    merged = {**storage.write_table(file, table.sort_by(QUERY_COLUMN)), "family": family}
    merged |= {"root": root, "batch": last}
    written = [entry["written"] for entry in portion if "written" in entry]
    if written:
        merged |= {"written": max(written), "first_written": _first_written(portion[0])}
    return merged


def with_merged(
    entries: Sequence[Entry], merged: Sequence[tuple[Sequence[Entry], Entry]]
) -> list[Entry]:
    """The list with merged files in place of what they were made of.

    >>> a, b, c, d = ({"root": "", "name": name} for name in "abcd")
    >>> [e["name"] for e in with_merged([a, b, c], [([a, b], d)])]
    ['d', 'c']
    """
    replaced = {_key(entry) for portion, _ in merged for entry in portion}
    last_of = {_key(portion[-1]): entry for portion, entry in merged}
    return [
        last_of.get(_key(entry), entry)
        for entry in entries
        if _key(entry) not in replaced or _key(entry) in last_of
    ]


def _key(entry: Entry) -> tuple[str, str]:
    return entry["root"], entry["name"]
