"""Windows of rows give what brute force gives, beside windows of time on the same stream."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.oracle import compare, model, plain_spark, rows
from tests.oracle.expressions import Style
from tests.oracle.generate import Case, Features, pools, queries, schemas, styles
from tests.oracle.generate_queries import binds
from tests.oracle.rows import RowWindow
from tests.support.harness import run_weft

SECOND = 1_000_000
BASE = 1_700_000_000 * SECOND
_numbers = itertools.count()
COMMON = settings(phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))


@st.composite
def mixed_cases(draw: st.DrawFn, batch_count: int) -> Case:
    """Two of three queries over windows of rows, the others over windows of time.

    Times lie on a coarse grid, so that many rows have the same; few values, so that ties are left
    to later columns, and rows are equal; some times are NULL, and some rows are late.
    """
    schema = draw(schemas())
    known = draw(pools(schema, hazards=False))
    names = [name for name in schema if name != "ts"]
    row = st.tuples(st.integers(-6, 9), *(st.sampled_from(known[name]) for name in names))
    batches = []
    for index in range(batch_count):
        drawn = draw(st.lists(row, min_size=24, max_size=32))
        times = [None if tick == 9 else BASE + (4 * index + tick) * SECOND for tick, *_ in drawn]
        batches.append(
            [
                {"ts": time} | dict(zip(names, cells, strict=True))
                for time, (_, *cells) in zip(times, drawn, strict=True)
            ]
        )
    columns = {name: kind for name, kind in schema.items() if name != "ts"}
    drawn_query = queries(columns, known, SECOND, Features(hazards=False)).filter(
        lambda query: binds(query, schema)
    )
    wanted = [draw(drawn_query) for _ in range(5)]
    for place in (0, 1, 3, 4):
        range_ = draw(st.integers(1, 30))
        slide = draw(st.integers(max(1, range_ // 6), range_ + 8))
        wanted[place] = replace(wanted[place], window=RowWindow(range_, slide))
    delay = draw(st.sampled_from([SECOND, 0]))
    return Case(schema, batches, delay, tuple(wanted), draw(st.booleans()))


def check(spark: SparkSession, root: Path, case: Case, style: Style, **settings: Any) -> int:
    """Compare all queries of a case; how many rows of row windows were compared."""
    texts = {f"q{i}": query.sql("s", style) for i, query in enumerate(case.queries)}
    outcome = run_weft(
        spark,
        texts,
        case.schema,
        case.batches,
        case.delay,
        directory=root / str(next(_numbers)),
        spark_settings=plain_spark.INTERPRETED,
        ansi=case.ansi,
        **settings,
    )
    compared = 0
    for name, query in zip(texts, case.queries, strict=True):
        oracle = rows if isinstance(query.window, RowWindow) else model
        try:
            expected = oracle.run(query, case.schema, case.batches, case.delay, ansi=case.ansi)
        except model.ModelError:
            assert outcome.status[name] == "quarantined", texts[name]
            continue
        assert outcome.status[name] == "active", (texts[name], outcome.detail[name])
        columns = oracle.columns(query, case.schema, ansi=case.ansi)
        assert outcome.columns[name] == columns, texts[name]
        difference = compare.difference(outcome.rows[name], expected)
        assert difference is None, f"{texts[name]}\n{difference}"
        compared += len(expected) if oracle is rows else 0
    return compared


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("kernel", "examples"), [("driver", 4), ("lanes", 1)])
def test_windows_of_rows_and_of_time(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, kernel: str, examples: int
) -> None:
    root = tmp_path_factory.mktemp(kernel)
    compared = 0

    @settings(COMMON, max_examples=examples)
    @given(mixed_cases(3), styles())
    def run(case: Case, style: Style) -> None:
        nonlocal compared
        compared += check(spark, root, case, style, kernel=kernel, lanes=3)

    run()
    assert compared > 30 * examples
