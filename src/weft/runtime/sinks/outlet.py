"""Results on their way from a stepper to a sink, and the result files of its log."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from weft.runtime.checkpoint.commits import Commit, Entry, Intent
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.protocol.engine import Outcome
from weft.runtime.protocol.step import StepWork
from weft.runtime.settings import Settings
from weft.runtime.sinks.delivery import Sink, StepResults, deliver
from weft.runtime.sinks.resultfiles import tidied
from weft.runtime.sinks.routes import stores_of


@dataclass(frozen=True)
class SinkOutlet:
    """Hands results to a sink, trying again if it fails."""

    sink: Sink
    settings: Settings
    owner: str
    """What the names of this checkpoint's result files begin with."""

    def deliver(
        self, log: StreamLog, work: StepWork, intent: Intent, outcome: Outcome, sequence: int
    ) -> list[Entry]:
        families = {name: pa.concat_tables(tables) for name, tables in outcome.families.items()}
        results = StepResults(
            stream=log.stream,
            step=work.name,
            batch=sequence,
            attempt=work.attempt,
            families=families,
            queries=log.any_plan(intent.plan_version).query_by_id,
            spark=work.spark,
        )
        settings = self.settings
        return deliver(self.sink, results, settings.sink_tries, settings.sink_pause_seconds)

    def remove_unnamed(self, log: StreamLog, step: str, merged: str) -> None:
        """Delete result files of a step, or of merging after another, that no commit or base names."""
        named = {(entry["root"], entry["name"]) for entry in log.all_result_files()}
        for store in stores_of(self.sink):
            for beginning in (step, f"merged~{merged}"):
                for name in store.own_files(log.stream, beginning):
                    if (store.place, name) not in named:
                        store.storage.delete(name)

    def base(self, log: StreamLog, commit: Commit, attempt: str) -> None:
        """Write the base of a commit: all result files, small ones merged, expired ones gone."""
        prefix = f"{self.owner}~{log.stream}~merged~{commit.name}~{attempt}"
        keep = self.settings.keep_micros
        kept, gone = tidied(log.storage, log.result_files(), prefix, keep)
        log.put_base(commit, kept, gone)
        self._remove_lost(log, commit)

    def _remove_lost(self, log: StreamLog, commit: Commit) -> None:
        """Delete what lost or repeated tasks of earlier steps have written into the store in the checkpoint, and no
        commit or base names. A folder of the user's may have files of a copy of this checkpoint: it is left alone."""
        named = {entry["name"] for entry in log.all_result_files() if not entry["root"]}
        for store in stores_of(self.sink):
            if not store.place:
                for name, step in store.files_by_step(log.stream):
                    if step < commit.name and name not in named:
                        store.storage.delete(name)
