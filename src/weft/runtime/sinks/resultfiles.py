"""The list of all result files, and the merging of small ones.

Every commit names its own result files. From time to time a base lists all files up to a step,
so that older commits can go, and many small files of a family become few. Merged files are
deleted one base later, so that a reader who listed them before can finish.
"""

from __future__ import annotations

from collections import defaultdict

import pyarrow as pa

from weft.kernel.windows.results import QUERY_COLUMN
from weft.runtime.protocol.commits import Entry
from weft.runtime.protocol.log import StreamLog
from weft.runtime.protocol.storage import Storage
from weft.runtime.sinks.sinks import results_folder

SMALL_FILE = 32 << 20
MERGE_AT_LEAST = 8


def merged_files(
    log: StreamLog, files: list[Entry], prefix: str
) -> tuple[list[Entry], list[Entry]]:
    small: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in files:
        if entry["size"] < SMALL_FILE:
            small[entry["root"], entry["family"]].append(entry)
    kept, gone = list(files), []
    for (root, family), entries in small.items():
        for portion in _portions(entries):
            storage = Storage(results_folder(log.storage, root))
            tables = [storage.read_table(entry["name"]) for entry in portion]
            table = pa.concat_tables(tables).sort_by(QUERY_COLUMN)
            first, last = portion[0]["batch"], portion[-1]["batch"]
            file = f"{family}/{prefix}~{first}~{last}.parquet"
            written = storage.write_table(file, table)
            merged = {**written, "family": family, "root": root, "batch": last}
            kept = [entry for entry in kept if entry not in portion] + [merged]
            gone += portion
    return kept, gone


def _portions(entries: list[Entry]) -> list[list[Entry]]:
    """Runs of small files that together make a file of bounded size."""
    portions: list[list[Entry]] = [[]]
    held = 0
    for entry in entries:
        if held + entry["size"] > 4 * SMALL_FILE:
            portions.append([])
            held = 0
        portions[-1].append(entry)
        held += entry["size"]
    return [portion for portion in portions if len(portion) >= MERGE_AT_LEAST]
