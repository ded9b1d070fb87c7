"""Unions in the kernel against DuckDB, step by step."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.kernel.network.test_steps import Runner
from tests.support.network_steps import (
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

from weft.kernel.network import Limits


def queries() -> st.SearchStrategy[list[UnionSpec | Spec]]:
    """Two unions, and a join that may share nodes with them."""
    return st.tuples(union_specs("u0"), specs("q"), union_specs("u1")).map(list)


@settings(max_examples=15)
@given(queries(), histories(), st.integers(1, 3))
def test_the_rows_of_a_union_are_those_of_duckdb_also_after_a_restart(
    live: list[UnionSpec | Spec], deltas: list[dict[str, pa.Table]], after: int
) -> None:
    oracle, runner = Oracle(), Runner(live, plan=GeneratedPlans())
    for number, delta in enumerate(deltas, 1):
        expected = oracle.step(live, delta, watermark_of(number - 1), {})
        assert runner.step(number, delta) == expected
        if number == after:
            runner.restart(watermark_of(number))


def test_a_union_node_has_the_rows_of_its_parents() -> None:
    branch = Spec("u", ("a",), (), ((0, "k"),))
    runner = Runner([UnionSpec("u", (branch, branch), (None, None))], Limits(), GeneratedPlans())
    rows = table("a", [{"k": 1, "#step": 1}, {"k": 2, "#step": 1}])
    assert runner.step(1, {"a": rows}) == {"u": {(1,): 2, (2,): 2}}
    ((union, _),) = runner.program.unions
    assert runner.outcome.counters.rows[union] == 4
