"""A network in the kernel: history loaded once, then one increment after the other, timed.

The kernel merges joins of the same inputs on the same keys into one physical join. ARGUS evaluates every
join node by statements of its own. `by_node` runs a network that way: each join node is a physical join.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.network.plan import NetworkPlan
from weft.experiments.argus.inputs import Inputs
from weft.kernel.network import State, advance, program
from weft.kernel.network.rows import STEP, TIME

_BEFORE_ALL: Final = -(1 << 62)
"""A watermark that admits every row."""


@dataclass(frozen=True)
class Executed:
    """The increments of one network."""

    seconds: tuple[float, ...]
    results: int
    """Rows of all queries in all increments."""
    candidates: int
    """Pairs of rows that joins looked at."""
    physical_joins: int
    history_rows: int
    history_bytes: int

    @property
    def seconds_per_increment(self) -> float:
        """The median: a busy moment of the machine does not count."""
        return float(np.median(self.seconds))


def execute(inputs: Inputs, plan: NetworkPlan, *, by_node: bool = False) -> Executed:
    """Load the history, run all increments."""
    compiled = program(plan, merged=not by_node)
    before = watermark_after(inputs.history, inputs)
    loaded = advance(
        compiled,
        State.empty(compiled),
        {inputs.stream: delta(inputs.history, 0)},
        _BEFORE_ALL,
        before,
        {},
    ).state
    state = loaded
    seconds, results, candidates = [], 0, 0
    for number, rows in enumerate(inputs.increments, 1):
        table = delta(rows, number)
        after = watermark_after(rows, inputs)
        started = time.perf_counter()
        outcome = advance(compiled, state, {inputs.stream: table}, before, after, {})
        seconds.append(time.perf_counter() - started)
        results += sum(table.num_rows for table in outcome.results.values())
        candidates += sum(outcome.counters.candidates.values())
        state, before = outcome.state, after
    return Executed(
        tuple(seconds),
        results,
        candidates,
        sum(node.join is not None for node in compiled.nodes),
        loaded.rows,
        loaded.nbytes,
    )


def delta(rows: pa.Table, step: int) -> pa.Table:
    """Rows of a stream as the kernel takes them: with their event time and their step."""
    micros = rows["ts"].cast(pa.timestamp("us")).cast(pa.int64())
    steps = pa.array(np.full(rows.num_rows, step, dtype=np.int64))
    return rows.append_column(TIME, micros).append_column(STEP, steps)


def watermark_after(rows: pa.Table, inputs: Inputs) -> int:
    """The watermark after these rows, which are the newest ones."""
    latest = pc.max(rows["ts"].cast(pa.timestamp("us")).cast(pa.int64())).as_py()
    return int(latest) - inputs.schema.delay
