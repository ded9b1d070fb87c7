"""Files that nothing names: what an attempt at a step left behind, and folders that are empty by now."""

from __future__ import annotations

from weft.runtime.protocol.log import Commit, StreamLog
from weft.runtime.protocol.step import StepWork
from weft.runtime.sinks.sinks import Sink, stores_of


def remove_fragments(log: StreamLog, work: StepWork) -> None:
    """Delete the fragments of earlier attempts at a step, but for those it goes on with."""
    folder = log.folder("state")
    kept = tuple(entry["name"] for entry in work.first_files)
    for name in log.storage.names(folder):
        own = f"{folder}/{name}"
        if name.startswith(f"{work.name}-") and not any(each.startswith(own) for each in kept):
            log.storage.delete(own)


def remove_results(log: StreamLog, sink: Sink, work: StepWork, last: Commit | None) -> None:
    """Delete the results of earlier attempts at a step, and of merging those before it."""
    folder = log.folder("handoff")
    for name in log.storage.names(folder):
        if name.startswith(f"{work.name}-"):
            log.storage.delete(f"{folder}/{name}")
    named = {(entry["root"], entry["name"]) for entry in log.all_result_files()}
    merging = last.name if last else ""
    for store in stores_of(sink):
        for step in (work.name, f"merged~{merging}"):
            for name in store.own_files(log.stream, step):
                if (store.place, name) not in named:
                    store.storage.delete(name)


def remove_old_folders(log: StreamLog, commit: Commit) -> None:
    """Delete the folders of steps before a commit of which it names no file."""
    folder = log.folder("state")
    used = {entry["name"].removeprefix(f"{folder}/").split("/")[0] for entry in commit.state}
    for name in log.storage.names(folder):
        if name not in used and name < f"{commit.batch:012d}":
            log.storage.delete(f"{folder}/{name}")
