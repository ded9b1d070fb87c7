"""The second act: hundreds of fraud patterns on a stream of transfers, each a join of two to five of them.

weft runs all of them incrementally as one network. A few of the same patterns are then run directly: each
in full over all transfers, as a database would have to do again whenever transfers arrive.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from weft.bench.network.steps import in_full_on_spark
from weft.bench.peers.in_full import sampled
from weft.cli.demo.telling import say, show_rows
from weft.cli.run.progress import display
from weft.cli.run.running import follow
from weft.cli.stopping import stop_signal
from weft.explain.wording import counted, figure
from weft.runtime.api.weft import Weft
from weft.workloads.categories import JoinSql
from weft.workloads.fed.patterns import FILES, act, meaning
from weft.workloads.fed.stream import STREAM, TIME, WATERMARK
from weft.workloads.stored import StoredStream

DIRECT_PATTERNS = 3
_SHOWN_PATTERNS, _SHOWN_MATCHES = 3, 3


@dataclass(frozen=True)
class Shared:
    """What weft did: seconds of the last increment, and all matches."""

    seconds: float
    matches: int


def patterns_act(spark: SparkSession, folder: Path, records: int, count: int) -> None:
    """Run the act and print it."""
    say(f"6. making {records // FILES * FILES:,} money transfers, some of them suspicious (seeded)")
    scene = act(folder / "transfers", records, count)
    shared = _weft(spark, scene.stream, scene.patterns, folder)
    chosen = sampled(scene.patterns, DIRECT_PATTERNS)
    say(f"10. {counted(len(chosen), 'pattern')} of the same, each in full over all transfers")
    seconds_alone = in_full_on_spark(spark, scene.stream, chosen, scene.stream.rows).median_seconds
    print(f"   {seconds_alone:.2f} s for a pattern on average")
    print()
    print(_compared(shared, seconds_alone, scene.patterns, scene.stream))


def _weft(
    spark: SparkSession, stream: StoredStream, patterns: Sequence[JoinSql], folder: Path
) -> Shared:
    with Weft(spark, folder / "checkpoint") as weft:
        frame = stream.open(spark, files_per_batch=1)
        weft.add_stream(STREAM, frame, time=TIME, watermark=WATERMARK)
        started = time.perf_counter()
        with weft.changes():
            for pattern in patterns:
                weft.register(pattern.name, pattern.sql)
        network = weft.explain().network
        took = time.perf_counter() - started
        say(f"7. registered {len(patterns)} different patterns in {took:.1f} s; they share")
        joins = sum(pattern.ways - 1 for pattern in patterns)
        nodes = () if network is None else network.nodes
        kept = sum(node.kind == "join" for node in nodes)
        print(f"   {counted(joins, 'join')} as {counted(kept, 'join node')} of one network")
        say("8. running all of them as one stream")
        running = weft.start(availableNow=True)
        with stop_signal() as stopping:
            follow(running, display("weft demo"), stopping)
        steps = running.recentProgress
        shared = Shared(_last_increment(steps), sum(int(step["results"]) for step in steps))
        print(f"   {counted(shared.matches, 'match', 'matches')}")
        say("9. some of the matches")
        for pattern in patterns[:_SHOWN_PATTERNS]:
            rows = weft.results(pattern.name).orderBy("first_transfer").limit(_SHOWN_MATCHES)
            show_rows(f"{pattern.name}: {meaning(pattern)}", rows, "no match yet")
        return shared


def _last_increment(steps: Sequence[dict[str, object]]) -> float:
    """The seconds of the last step with data of the stream, and of the network's."""
    seconds = 0.0
    for log in (True, False):
        of_log = [s for s in steps if str(s["stream"]).startswith("@") == log and s["rows"]]
        if of_log:
            seconds += float(str(of_log[-1]["seconds"]))
    return seconds


def _compared(
    shared: Shared, seconds_alone: float, patterns: Sequence[JoinSql], stream: StoredStream
) -> str:
    direct = seconds_alone * len(patterns)
    return (
        f"With {figure(stream.rows_per_file)} new transfers weft's step for all {len(patterns)} "
        f"patterns took {shared.seconds:.1f} s.\n"
        f"Directly, {DIRECT_PATTERNS} of them took {seconds_alone:.2f} s each over all transfers: "
        f"{figure(direct)} s for all of them, {figure(direct / shared.seconds)} times as long."
    )
