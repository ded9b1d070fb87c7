"""`weft run`: registers what the files ask for, runs it, shows progress."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import typer

from weft.catalog.store import QUARANTINED
from weft.cli.check import bind_all, require_queries
from weft.cli.progress import Display, Tally, display
from weft.cli.project.folder import Project, load
from weft.cli.project.opening import draft_weft, open_weft, sink_of
from weft.cli.project.problems import InvalidProject
from weft.cli.project.queries import QueryFile
from weft.cli.project.session import session
from weft.cli.project.sync import Changes, synchronise
from weft.errors import SqlError
from weft.runtime.api.weft import Weft
from weft.runtime.protocol.lease import Lease
from weft.runtime.protocol.storage import Storage
from weft.runtime.run.run import Run

_POLL_SECONDS = 0.2


def run(
    folder: Path = typer.Argument(..., metavar="DIR", help="A project folder."),
    available_now: bool = typer.Option(False, help="Run what is there now, then end."),
    as_json: bool = typer.Option(False, "--json", help="Print a JSON object for every step."),
) -> None:
    """Run the project, with live progress. Ctrl-C ends it after the step under way."""
    project = load(folder)
    queries = require_queries(project)
    with session(project.name, project.spark) as spark:
        weft = open_weft(spark, project)
        _require_free(project)
        try:
            changes = synchronise(weft, queries)
        except SqlError:
            with draft_weft(spark, project) as draft:
                raise InvalidProject(bind_all(draft, queries).problems) from None
        if not as_json:
            print(_opening(queries, changes), flush=True)
        shown = display(f"weft {project.name}", as_json)
        with stop_signal() as stopping:
            tally = follow(_start(weft, project, available_now), shown, stopping)
        if not as_json:
            print(tally.summary())
            _report_quarantined(weft)


def _require_free(project: Project) -> None:
    """Refuse to change the queries of a project that another process runs."""
    lease = Lease(Storage(project.checkpoint))
    lease.acquire()
    lease.release()


def _opening(queries: list[QueryFile], changes: Changes) -> str:
    return f"{len(queries)} queries ({changes})"


def _start(weft: Weft, project: Project, available_now: bool) -> Run:
    sink = sink_of(project)
    if available_now:
        return weft.start(sink, availableNow=True)
    return weft.start(sink, processingTime=project.trigger or "0 seconds")


def follow(running: Run, shown: Display, stopping: threading.Event) -> Tally:
    """Show a run until it ends or is to stop; raises what ended it, if it failed."""
    tally = Tally()
    try:
        with shown:
            while not stopping.is_set() and not running.awaitTermination(_POLL_SECONDS):
                shown.update(tally, tally.add(running.recentProgress))
            if stopping.is_set():
                running.stop()
            shown.update(tally, tally.add(running.recentProgress))
    except BaseException:
        running.stop()
        raise
    return tally


@contextmanager
def stop_signal() -> Iterator[threading.Event]:
    """An event that Ctrl-C or a TERM signal sets; a second one interrupts at once.

    Spark's own handler would cancel the step under way.
    """
    stopping = threading.Event()

    def handle(number: int, frame: FrameType | None) -> None:
        if stopping.is_set():
            raise KeyboardInterrupt
        stopping.set()

    if threading.current_thread() is not threading.main_thread():
        yield stopping
        return
    kept = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopping
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


def _report_quarantined(weft: Weft) -> None:
    for handle in weft.queries:
        if handle.status == QUARANTINED:
            print(f"{handle.name} is quarantined: {handle.detail}")
