"""Which bucket files can be used as they are.

Bucket files are an index: all that they hold can be read again from the files of history. An input's files
are of use as long as it has the same members, columns and bounds on time, and the same versions of the
tables that its rows depend on. A commit names the layout of every input that it has bucket files for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from weft.algebra import codec
from weft.kernel.network import Program
from weft.kernel.network.program import PhysicalNode
from weft.runtime.checkpoint.commits import Commit, Entry
from weft.runtime.network.lanes.bucket_files import input_key
from weft.runtime.network.lanes.node_rows import BUCKETS

MOST_FILES = 64
"""How many bucket files an input may have, for each task that writes them, before they are made anew."""

_FORM = 2
"""How rows are held. Before, times had no zone."""


def layouts(program: Program, tables: Mapping[str, str]) -> dict[str, str]:
    """What the bucket files of every input must hold, as a digest. `tables`: the versions in use."""
    result: dict[str, str] = {}
    for node in program.nodes:
        versions = [tables[name] for name in sorted(node.tables)]
        for entry in node.inputs:
            alternatives = [list(map(list, one)) for one in entry.lifetime.alternatives]
            held = [_FORM, list(entry.members), list(node.stored), alternatives, versions]
            result[input_key(entry)] = codec.digest(held, 16)
    return result


def reads_stream(program: Program, node: PhysicalNode) -> bool:
    return not program.streams.isdisjoint(node.relations)


def below(program: Program, joins: Collection[str]) -> set[str]:
    """The inputs of joins that are computed again. Bucket files may have lost rows that files of history
    still have."""
    sides = (program.node_by_id[join].join for join in joins)
    return {input_key(entry) for join in sides if join for entry in (join.left, join.right)}


def usable(
    wanted: Mapping[str, str], last: Commit | None, tasks: int, wrong: Collection[str] = ()
) -> tuple[list[Entry], list[str]]:
    """The bucket files that can be used, and the inputs that need new ones; `wrong` ones in any case."""
    known: Mapping[str, str] = (last.engine.get(BUCKETS) or {}) if last else {}
    files: dict[str, list[Entry]] = {}
    for entry in last.live.get(BUCKETS, ()) if last else ():
        files.setdefault(entry["input"], []).append(entry)
    stale = [
        key
        for key, layout in wanted.items()
        if known.get(key) != layout or key in wrong or len(files.get(key, ())) > MOST_FILES * tasks
    ]
    kept = [entry for key in wanted if key not in stale for entry in files.get(key, ())]
    return kept, stale


def unexpired(entries: Sequence[Entry], watermark: int) -> list[Entry]:
    """The bucket files with rows that a join still needs."""
    return [e for e in entries if e["expires"] is None or e["expires"] > watermark]
