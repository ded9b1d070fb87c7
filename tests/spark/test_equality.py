"""weft gives what the brute-force model gives, whatever is drawn.

The model is validated against plain Spark in `test_model_against_spark`. Every case runs
several queries of different windows, predicates, keys and aggregates as one shared stream.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from pyspark.sql import SparkSession
from tests.oracle import compare, model, plain_spark
from tests.oracle.expressions import Style
from tests.oracle.generate import Case, Features, cases, styles
from tests.support import seeds
from tests.support.harness import run_weft

SHARING: tuple[dict[str, Any], ...] = (
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


#: The settings of most users, and some of the others: different ones in every run of the tests.
CHOSEN = [SHARING[0], *seeds.some(__name__, SHARING[1:], 2)]
LANES = CHOSEN[-1:]
SHARING_SETTINGS = set().union(*SHARING)

COMMON = settings(
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
ROWS = 6
"""How many a case must emit."""

Emitted = list[tuple[int, tuple[Any, ...]]]


def by_model(case: Case) -> list[Emitted | None]:
    """What each query emits; None if it raises."""
    expected: list[Emitted | None] = []
    for query in case.queries:
        try:
            rows = model.run(query, case.schema, case.batches, case.delay, ansi=case.ansi)
        except model.ModelError:
            expected.append(None)
        else:
            expected.append(rows)
    return expected


def check(spark: SparkSession, case: Case, style: Style, **settings: Any) -> None:
    """Compare all queries of a case. One that emits next to nothing is not worth a run.

    With the settings of most users Spark compiles its plans, as it does for them. With all others it
    interprets them, which is quicker for a few rows.
    """
    wanted = by_model(case)
    assume(sum(len(rows) for rows in wanted if rows) >= ROWS)
    texts = {f"q{i}": query.sql("s", style) for i, query in enumerate(case.queries)}
    with tempfile.TemporaryDirectory() as folder:
        outcome = run_weft(
            spark,
            texts,
            case.schema,
            case.batches,
            case.delay,
            directory=Path(folder) / "run",
            spark_settings=None if settings.keys() & SHARING_SETTINGS else plain_spark.COMPILED,
            ansi=case.ansi,
            **settings,
        )
    for name, query, expected in zip(texts, case.queries, wanted, strict=True):
        if expected is None:
            assert outcome.status[name] == "quarantined", texts[name]
            continue
        assert outcome.status[name] == "active", (texts[name], outcome.detail[name])
        columns = model.columns(query, case.schema, ansi=case.ansi)
        assert outcome.columns[name] == columns, texts[name]
        difference = compare.difference(outcome.rows[name], expected)
        assert difference is None, f"{texts[name]}\n{difference}"


def named(sharing: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in sharing.items()) or "default"


@pytest.mark.parametrize("sharing", CHOSEN, ids=named)
@settings(COMMON, max_examples=1)
@given(cases(Features(), min_queries=3, max_queries=5), styles())
def test_the_kernel_on_the_driver(
    spark: SparkSession, sharing: dict[str, Any], case: Case, style: Style
) -> None:
    check(spark, case, style, **sharing)


@pytest.mark.parametrize("sharing", LANES, ids=named)
@settings(COMMON, max_examples=1)
@given(cases(Features(hazards=False), min_queries=3, max_queries=4), styles())
def test_the_kernel_in_lanes(
    spark: SparkSession, sharing: dict[str, Any], case: Case, style: Style
) -> None:
    check(spark, case, style, kernel="lanes", lanes=3, **sharing)
