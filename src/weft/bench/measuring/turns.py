"""Contenders take turns, so that a busy moment of the machine hits all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from weft.bench.measuring.measure import Measurement, combine
from weft.bench.measuring.report import rate
from weft.workloads.stored import StoredStream

Say = Callable[[str], None]
Contender = Callable[[StoredStream], Measurement]


def take_turns(
    contenders: Mapping[str, Contender],
    stream: StoredStream,
    turns: int,
    say: Say,
    warm_up: StoredStream | None = None,
) -> dict[str, Measurement]:
    """Every contender once on `warm_up`, if given, then all in turn on the stream; what each of them
    took. A contender that did not read every row is refused."""
    for name, run in contenders.items():
        if warm_up is not None:
            say(f"warming up: {name}")
            run(warm_up)
    runs: dict[str, list[Measurement]] = {name: [] for name in contenders}
    for turn in range(turns):
        for name, run in contenders.items():
            say(f"turn {turn + 1} of {turns}: {name}")
            measured = run(stream)
            if measured.rows != stream.rows:
                raise RuntimeError(f"{measured.name} read {measured.rows} of {stream.rows}")
            say(f"{measured.name}: {rate(measured)}")
            runs[name].append(measured)
    return {name: combine(measured) for name, measured in runs.items()}
