"""Panes of aggregation sets: what hidden queries give is published to followers, and given to no sink."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.joinagg.sets import PANES
from weft.kernel.windows.program import PUBLISHED_FAMILY
from weft.kernel.windows.results import QUERY_COLUMN
from weft.runtime.checkpoint.commits import Entry
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.protocol.publishing import PUBLISHED
from weft.runtime.protocol.step import StepWork
from weft.runtime.sinks.delivery import Sink
from weft.runtime.sinks.store import ResultStore
from weft.runtime.windows.weaving import WindowOutcome


def publish_panes(
    log: StreamLog, work: StepWork, outcome: WindowOutcome, sink: Sink
) -> list[Entry]:
    """Take the panes out of a step's results, and write them as published files."""
    _take_back(outcome, sink)
    names = [name for name in outcome.families if name.startswith(PUBLISHED_FAMILY)]
    folder = f"{log.folder(PUBLISHED)}/{work.name}-{work.attempt}-{PANES}"
    entries: list[Entry] = []
    for name in names:
        rows = pa.concat_tables(outcome.families.pop(name))
        if not rows.num_rows:
            continue
        ends = rows.column("c0").cast(pa.int64())
        entries.append(
            {
                **log.storage.write_table(f"{folder}/{name}.parquet", rows),
                "publication": PANES,
                "sets": sorted(pc.unique(rows.column(QUERY_COLUMN)).to_pylist()),
                "end": pc.max(ends).as_py(),
            }
        )
    return entries


def _take_back(outcome: WindowOutcome, sink: Sink) -> None:
    """Panes that lanes have written into the result store, where nobody looks for them."""
    if not isinstance(sink, ResultStore):
        return
    written = [e for e in outcome.written if e["family"].startswith(PUBLISHED_FAMILY)]
    for entry in written:
        table = sink.storage.read_table(entry["name"]).drop_columns(["batch"])
        outcome.families.setdefault(entry["family"], []).append(table)
        sink.storage.delete(entry["name"])
    outcome.written = [entry for entry in outcome.written if entry not in written]
