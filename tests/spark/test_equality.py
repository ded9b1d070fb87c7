"""weft gives what the brute-force model gives, whatever is drawn.

The model is validated against plain Spark in `test_model_against_spark`. Every case runs
several queries of different windows, predicates, keys and aggregates as one shared stream.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from pyspark.sql import SparkSession
from tests.oracle import compare, model, plain_spark
from tests.oracle.expressions import Style
from tests.oracle.generate import Case, Features, cases, styles
from tests.support.harness import run_weft

_numbers = itertools.count()

SHARING = (
    {},
    {"optimizer": "noshare", "model": "triops"},
    {"optimizer": "noshare", "model": "twoops"},
    {"optimizer": "triweave", "model": "triops"},
    {"optimizer": "weaveshare", "model": "twoops"},
    {"optimizer": "noshare", "model": "calibrated"},
    {"optimizer": "best", "model": "triops"},
    {"allocator": "fptas", "memory_budget": 1_000_000},
    {"allocator": "uniform", "memory_budget": 1_000_000, "optimizer": "noshare"},
    {"allocator": "slc", "memory_budget": 1000},
    {"allocator": "fptas", "memory_budget": 1, "passes": ("groupby", "predicates")},
    {"allocator": "uniform", "memory_budget": 1_000_000, "passes": ("groupby",)},
    {"passes": ("predicates", "windows")},
    {"passes": ()},
)


def check(spark: SparkSession, root: Path, case: Case, style: Style, **settings: Any) -> int:
    """Compare all queries of a case; how many rows were compared. Spark compiles its plans in one
    case of four and interprets them in the others, which is quicker for a few rows. Cases take turns in who
    chooses the weave groups."""
    number = next(_numbers)
    texts = {f"q{i}": query.sql("s", style) for i, query in enumerate(case.queries)}
    outcome = run_weft(
        spark,
        texts,
        case.schema,
        case.batches,
        case.delay,
        directory=root / str(number),
        spark_settings=plain_spark.INTERPRETED if number % 4 else None,
        ansi=case.ansi,
        **SHARING[number % len(SHARING)],
        **settings,
    )
    compared = 0
    for name, query in zip(texts, case.queries, strict=True):
        try:
            expected = model.run(query, case.schema, case.batches, case.delay, ansi=case.ansi)
        except model.ModelError:
            assert outcome.status[name] == "quarantined", texts[name]
            continue
        assert outcome.status[name] == "active", (texts[name], outcome.detail[name])
        columns = model.columns(query, case.schema, ansi=case.ansi)
        assert outcome.columns[name] == columns, texts[name]
        difference = compare.difference(outcome.rows[name], expected)
        assert difference is None, f"{texts[name]}\n{difference}"
        compared += len(expected)
    return compared


COMMON = settings(
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.timeout(900)
def test_the_kernel_on_the_driver(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("driver")
    compared = 0

    @settings(COMMON, max_examples=30)
    @given(cases(Features(), min_queries=3, max_queries=7), styles())
    def run(case: Case, style: Style) -> None:
        nonlocal compared
        compared += check(spark, root, case, style)

    run()
    assert compared > 80


@pytest.mark.timeout(900)
def test_the_kernel_in_lanes(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = tmp_path_factory.mktemp("lanes")
    compared = 0

    @settings(COMMON, max_examples=8)
    @given(cases(Features(hazards=False), min_queries=3, max_queries=6), styles())
    def run(case: Case, style: Style) -> None:
        nonlocal compared
        compared += check(spark, root, case, style, kernel="lanes", lanes=3)

    run()
    assert compared > 10
