"""Versions of tables in a checkpoint: who keeps them, and when they go."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from weft.runtime.checkpoint.commits import Commit, Intent
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.tables import TableVersions

OLD, NEW = pa.table({"id": [1, 2]}), pa.table({"id": [3]})


def run(storage: Storage, logs: list[StreamLog], **contents: pa.Table) -> TableVersions:
    """The tables of a run, with these contents."""
    frames: Any = {
        name: SimpleNamespace(schema=(), toArrow=lambda rows=rows: rows)
        for name, rows in contents.items()
    }
    return TableVersions(storage, lambda: frames, lambda: logs)


def intent(batch: int, tables: dict[str, str]) -> Intent:
    return Intent(
        batch=batch, plan_version=1, watermark_before=0, watermark=0, settings={}, tables=tables
    )


def commit(log: StreamLog, batch: int) -> None:
    before = log.last()
    log.put_commit(
        Commit(
            stream=log.stream,
            kind="data",
            batch=batch,
            sequence=batch,
            previous=before.name if before else None,
            spark_query="",
            offsets="",
            epoch=1,
            plan_version=1,
            watermark=0,
            max_event_time=None,
            settings={},
        ),
        before,
    )


def test_contents_stay_while_an_intent_of_any_log_names_them(tmp_path: Path) -> None:
    storage = Storage(str(tmp_path))
    windows, network = StreamLog(storage, "s"), StreamLog(storage, "@network")
    logs = [windows, network]
    first = run(storage, logs, people=OLD)
    versions = first.versions("s", {"people": ()})
    windows.put_intent(intent(0, versions))  # and the run crashes
    second = run(storage, logs, people=NEW)
    changed = second.versions("@network", {"people": ()})
    assert changed != versions
    network.put_intent(intent(0, changed))
    commit(network, 0)
    second.clean()
    assert second.rows(versions["people"]) == OLD, "the windows' step will run again"
    assert second.rows(changed["people"]) == NEW
    commit(windows, 0)
    second.clean()
    assert storage.names("tables") == [f"{changed['people']}.parquet"]


def test_contents_that_were_given_for_an_intent_to_come_stay(tmp_path: Path) -> None:
    """A step may be finished beside the next one, whose intent is not written yet."""
    storage = Storage(str(tmp_path))
    log = StreamLog(storage, "s")
    tables = run(storage, [log], people=OLD, cities=NEW)
    log.put_intent(intent(0, tables.versions("s", {"people": ()})))
    next_versions = tables.versions("s", {"people": (), "cities": ()})
    commit(log, 0)
    tables.clean()
    assert len(storage.names("tables")) == 2
    log.put_intent(intent(1, next_versions))
    tables.versions("s", {})
    commit(log, 1)
    tables.clean()
    assert storage.names("tables") == []


def test_spark_reads_the_files_of_all_tables(tmp_path: Path) -> None:
    """Spark takes files whose names begin with `_` for hidden ones, and reads nothing."""
    storage = Storage(str(tmp_path))
    versions = run(storage, [], _people=OLD).versions("s", {"_people": ()})
    assert not versions["_people"].startswith("_")
