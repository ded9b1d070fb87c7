"""Live progress of a run: a table that moves on a terminal, a line per step elsewhere."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from weft.algebra.numbered import source_name
from weft.explain.wording import counted, figure, instant, size_text
from weft.runtime.joinagg.engine import LOG as AGGREGATIONS_LOG
from weft.runtime.network.engine import LOG as NETWORK_LOG

Step = Mapping[str, Any]
_IDLE_SECONDS = 10.0
"""How long a stream must stand still before it is said that others wait for it."""
_WIDEST = 1000


@dataclass
class Totals:
    """What a stream's steps add up to, and its last ones."""

    stream: str
    steps: int = 0
    rows: int = 0
    results: int = 0
    late_rows: int = 0
    null_times: int = 0
    seconds: float = 0.0
    last: Step = field(default_factory=dict)
    last_data: Step = field(default_factory=dict)

    def add(self, step: Step) -> None:
        self.steps += 1
        self.rows += step["rows"]
        self.results += step["results"]
        self.late_rows += step["late_rows"]
        self.null_times += step["null_times"]
        self.seconds += step["seconds"]
        self.last = step
        if step["rows"] or not self.last_data:
            self.last_data = step

    @property
    def rows_per_second(self) -> float:
        return self.rows / self.seconds if self.seconds else 0.0

    @property
    def results_per_second(self) -> float:
        return self.results / self.seconds if self.seconds else 0.0


class Tally:
    """Takes each step once from lists of recent steps."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, int, str]] = set()
        """The steps of the last list: what has left the list of recent steps does not come back."""
        self.totals: dict[str, Totals] = {}

    def add(self, steps: Iterable[Step]) -> list[Step]:
        """Count the steps that are new; these are returned."""
        new = []
        listed = {(step["stream"], step["batch"], step["kind"]): step for step in steps}
        for key, step in listed.items():
            if key not in self._seen:
                total = self.totals.setdefault(step["stream"], Totals(step["stream"]))
                total.add(step)
                new.append(step)
        self._seen = set(listed)
        return new

    def summary(self) -> str:
        """The run in a line for each stream."""
        lines = []
        for total in self.totals.values():
            late = f", {counted(total.late_rows, 'late row')}" if total.late_rows else ""
            lines.append(
                f"{stream_text(total.stream)}: {counted(total.rows, 'row')} in {total.seconds:.1f} s "
                f"({figure(total.rows_per_second)} rows/s), {counted(total.results, 'result')} "
                f"({figure(total.results_per_second)}/s){late}"
            )
        return "\n".join(lines) or "no data"


class Display(Protocol):
    """Shows the steps of a run as they come."""

    def __enter__(self) -> Display: ...
    def __exit__(self, *_: object) -> None: ...
    def update(self, tally: Tally, new: list[Step]) -> None: ...
    def say(self, line: str) -> None: ...


class Lines:
    """A line per step, or a JSON object per step; anything else goes to standard error."""

    def __init__(self, as_json: bool = False) -> None:
        self._as_json = as_json

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def update(self, tally: Tally, new: list[Step]) -> None:
        for step in new:
            print(json.dumps(dict(step)) if self._as_json else step_line(step), flush=True)

    def say(self, line: str) -> None:
        if not self._as_json or sys.stderr.isatty():
            print(line, file=sys.stderr, flush=True)


def step_line(step: Step) -> str:
    """A step in a line."""
    what = "flush" if step["kind"] == "flush" else f"batch {step['batch']}"
    rows = ""
    if step["rows"]:
        rate = figure(step["rows"] / step["seconds"]) if step["seconds"] else "?"
        rows = f"{counted(step['rows'], 'row')} ({rate}/s), "
    late = f", {counted(step['late_rows'], 'late row')}" if step["late_rows"] else ""
    return (
        f"{stream_text(step['stream'])} {what}: {rows}{step['seconds']:.2f} s, "
        f"{counted(step['results'], 'result')}, {watermark_text(step)}, "
        f"state {size_text(step['state_bytes'])}{late}{_waiting_text(step)}"
    )


def _waiting_text(step: Step) -> str:
    """Which streams hold the others back, if they have stood still for a while.

    >>> _waiting_text({"waits_for": {"bids": {"watermark": None, "since": 0.0}}})
    ', waits for bids (idle: no instant comes before it sends later rows)'
    """
    now = time.time()
    waits_for = step.get("waits_for", {})
    idle = [name for name, about in waits_for.items() if now - about["since"] >= _IDLE_SECONDS]
    why = "idle: no instant comes before it sends later rows"
    return f", waits for {', '.join(idle)} ({why})" if idle else ""


def stream_text(name: str) -> str:
    """Whose steps these are, for people: a stream, or the queries of several streams, which have a log of their own.

    >>> stream_text("bids"), stream_text(NETWORK_LOG), stream_text(AGGREGATIONS_LOG)
    ('bids', 'joins', 'aggregation joins')
    """
    return {NETWORK_LOG: "joins", AGGREGATIONS_LOG: "aggregation joins"}.get(name, name)


def watermark_text(step: Step) -> str:
    """A step's watermark, which in the first batch says nothing; that of row windows is how many
    rows have numbers."""
    mark = step["watermark"]
    if step["stream"] != source_name(step["stream"]):
        return f"{counted(mark, 'row')} numbered"
    return f"watermark {instant(mark) if mark else 'none yet'}"


class LiveTable:
    """A moving bar and the figures of all streams."""

    def __init__(self, title: str, console: Console) -> None:
        self._title, self._started = title, time.monotonic()
        self._tally = Tally()
        self._ended = False
        self._live = Live(console=console, refresh_per_second=8, get_renderable=self._render)

    def __enter__(self) -> LiveTable:
        self._live.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._live.refresh()
        self._live.__exit__(None, None, None)

    def update(self, tally: Tally, new: list[Step]) -> None:
        self._tally = tally

    def say(self, line: str) -> None:
        self._live.console.print(Text(line))

    def _render(self) -> RenderableType:
        elapsed = time.monotonic() - self._started
        steps = sum(total.steps for total in self._tally.totals.values())
        head = Table.grid(padding=(0, 2))
        ended = self._ended
        bar = ProgressBar(total=1.0 if ended else None, completed=1.0, width=24, pulse=not ended)
        head.add_row(
            Text(self._title, style="bold"), bar, f"{elapsed:.0f} s", counted(steps, "step")
        )
        return Group(head, StreamFigures(self._tally)) if steps else head


class StreamFigures:
    """The last figures of every stream: a table where it fits, else a few lines for each."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        table = streams_table(self._tally)
        if (
            console.measure(table, options=options.update_width(_WIDEST)).maximum
            <= options.max_width
        ):
            yield table
        else:
            yield Text("\n".join(line for t in self._tally.totals.values() for line in _block(t)))


def streams_table(tally: Tally) -> Table:
    """The last figures of every stream in a row each."""
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    headings = (
        "stream",
        "batch",
        "rows",
        "rows/s",
        "batch time",
        "results",
        "results/s",
        "late rows",
        "state",
        "kernel",
        "watermark",
    )
    for heading in headings:
        left = heading in ("stream", "watermark")
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    for total in tally.totals.values():
        last, data = total.last, total.last_data
        table.add_row(
            stream_text(total.stream),
            str(last["batch"]),
            f"{total.rows:,}",
            _rows_per_second(data),
            f"{data['seconds']:.2f} s",
            f"{total.results:,}",
            figure(total.results_per_second),
            f"{total.late_rows:,}",
            size_text(last["state_bytes"]),
            str(last["where"]),
            watermark_text(last).removeprefix("watermark "),
        )
    return table


def _block(total: Totals) -> Iterator[str]:
    """The figures of a stream in lines that fit a narrow terminal."""
    last, data = total.last, total.last_data
    yield (
        f"{stream_text(total.stream)}: batch {data['batch']} took {data['seconds']:.2f} s, "
        f"{_rows_per_second(data)} rows/s"
    )
    yield (
        f"  so far {counted(total.rows, 'row')}, {counted(total.results, 'result')}, "
        f"{counted(total.late_rows, 'late row')}"
    )
    yield f"  {watermark_text(last)}, state {size_text(last['state_bytes'])}"


def _rows_per_second(step: Step) -> str:
    return figure(step["rows"] / step["seconds"]) if step["seconds"] else "–"


def display(title: str, as_json: bool = False) -> Display:
    """The display that suits standard output."""
    if as_json or not sys.stdout.isatty():
        return Lines(as_json)
    return LiveTable(title, Console(highlight=False))
