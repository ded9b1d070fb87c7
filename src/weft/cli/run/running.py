"""Registers what the files ask for, runs it, shows progress."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from weft.catalog.store import QUARANTINED
from weft.cli.check import bind_all, require_queries
from weft.cli.main import INTERRUPTED
from weft.cli.project.folder import Project, load
from weft.cli.project.opening import draft_weft, open_weft, sink_of
from weft.cli.project.problems import InvalidProject
from weft.cli.project.session import session
from weft.cli.project.sync import synchronise
from weft.cli.run.progress import Display, Tally, display
from weft.cli.stages import Stages
from weft.cli.stopping import ENDED_AT_ONCE, ENDING, stop_signal
from weft.errors import SqlError
from weft.explain.wording import counted
from weft.runtime.api.weft import Weft
from weft.runtime.checkpoint.lease import Lease
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.run.run import Run

_POLL_SECONDS, _NOTICE_SECONDS = 0.2, 2.0

Notices = Callable[[], list[str]]


def run_project(folder: Path, stages: Stages, *, available_now: bool, as_json: bool) -> list[str]:
    """Run a project until it ends; the names of the queries that are quarantined then."""
    project = load(folder)
    queries = require_queries(project)
    stages.at("starting Spark")
    with session(project.name, project.spark) as spark:
        stages.at("opening the checkpoint")
        weft = open_weft(spark, project)
        _require_free(project)
        stages.at(f"registering and planning {counted(len(queries), 'query', 'queries')}")
        try:
            changes = synchronise(weft, queries)
        except SqlError:
            with draft_weft(spark, project) as draft:
                raise InvalidProject(bind_all(draft, queries).problems) from None
        with stop_signal() as stopping:
            running = _start(weft, project, available_now)
            stages.done()
            if not as_json:
                print(f"{counted(len(queries), 'query', 'queries')} ({changes})", flush=True)
            quarantined = Quarantined(weft)
            shown = display(f"weft {project.name}", as_json)
            try:
                tally = follow(running, shown, stopping, quarantined.new)
            except KeyboardInterrupt:
                end_at_once()
        if not as_json:
            print(tally.summary())
        for line in quarantined.new():
            print(line, file=sys.stderr)
        if quarantined.names:
            print(_advice(folder, quarantined.names), file=sys.stderr)
        return quarantined.names


class Quarantined:
    """The queries of a run that are quarantined, each told once."""

    def __init__(self, weft: Weft) -> None:
        self._weft = weft
        self._told: dict[str, str] = {}

    @property
    def names(self) -> list[str]:
        return list(self._told)

    def new(self) -> list[str]:
        """A line for each query that was not told before."""
        lines = []
        for handle in self._weft.queries:
            if handle.status == QUARANTINED and handle.name not in self._told:
                self._told[handle.name] = handle.detail
                lines.append(f"{handle.name} is quarantined: {handle.detail}")
        return lines


def _advice(folder: Path, names: list[str]) -> str:
    number = counted(len(names), "query is", "queries are")
    return (
        f"{number} quarantined: correct the SQL in {folder}/queries, or bring a query back as it is "
        f"with `weft resume {folder} NAME`; --keep-going exits with 0 all the same"
    )


def _require_free(project: Project) -> None:
    """Refuse to change the queries of a project that another process runs."""
    lease = Lease(Storage(project.checkpoint))
    lease.acquire()
    lease.release()


def _start(weft: Weft, project: Project, available_now: bool) -> Run:
    sink = sink_of(project)
    if available_now:
        return weft.start(sink, availableNow=True)
    return weft.start(sink, processingTime=project.trigger or "0 seconds")


def follow(
    running: Run, shown: Display, stopping: threading.Event, notices: Notices = list
) -> Tally:
    """Show a run until it ends or is to stop; raises what ended it, if it failed.

    `notices` are asked for now and then, and shown as they come.
    """
    tally = Tally()
    try:
        with shown:
            asked = time.monotonic()
            while not stopping.is_set() and not running.awaitTermination(_POLL_SECONDS):
                shown.update(tally, tally.add(running.recentProgress))
                if time.monotonic() - asked > _NOTICE_SECONDS:
                    asked = time.monotonic()
                    for notice in notices():
                        shown.say(notice)
            if stopping.is_set():
                shown.say(ENDING)
                running.stop()
            shown.update(tally, tally.add(running.recentProgress))
    except KeyboardInterrupt:
        raise  # the second Ctrl-C: nothing is waited for
    except BaseException:
        running.stop()
        raise
    return tally


def end_at_once() -> NoReturn:
    """Leave as a crash would. Ending Spark's threads in order would wait for the step."""
    print(ENDED_AT_ONCE, file=sys.stderr, flush=True)
    sys.stdout.flush()
    os._exit(INTERRUPTED)
