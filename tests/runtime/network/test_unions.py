"""Unions through the network's engine, on the driver and in tasks, against DuckDB."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.network_engine import EngineRun, numbered
from tests.support.network_steps import (
    STREAMS,
    GeneratedPlans,
    Oracle,
    Spec,
    UnionSpec,
    histories,
    specs,
    table,
    union_specs,
    watermark_of,
)


@settings(max_examples=8, deadline=None)
@given(
    st.tuples(union_specs("u"), specs("q"), union_specs("v")),
    histories(),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.integers(0, 4),
    st.integers(1, 3),
)
def test_unions_come_and_go_on_the_driver_and_in_tasks(
    queries: tuple[UnionSpec, Spec, UnionSpec],
    deltas: list[dict[str, pa.Table]],
    in_lanes: list[bool],
    restart: int,
    after: int,
) -> None:
    """The second union comes later. The first one goes; what both share stays."""
    first, join, second = (numbered(spec, number) for number, spec in enumerate(queries))
    from_steps = {second.id: dict.fromkeys(STREAMS, after + 1)}
    with TemporaryDirectory() as folder:
        oracle = Oracle()
        run = EngineRun(Path(folder), [first, join], plan=GeneratedPlans(), lane_cap_bytes=600)
        for number, delta in enumerate(deltas, 1):
            if number == restart:
                run.restart()
            live = [first, join] if number <= after else [join, second]
            run.use(live)
            expected = oracle.step(live, delta, watermark_of(number - 1), from_steps)
            emitted = run.step(
                {name: delta.get(name, table(name, [])) for name in {*delta, *STREAMS}},
                watermark_of(number),
                registered=1 if number <= after else 2,
                in_lanes=in_lanes[number - 1],
            )
            assert emitted == expected
