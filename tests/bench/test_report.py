"""A report shows every comparison with its target, on a terminal, in JSON and in Markdown."""

from __future__ import annotations

import json

import pytest

from weft.bench.measuring.measure import Measurement
from weft.bench.measuring.report import Comparison, Report, text

REPORT = Report(
    title="a benchmark",
    machine={"cores": "2"},
    settings={"rows": 10},
    comparisons=(
        Comparison("faster", "5 rows/s", "1 rows/s", 5.0, "at least", 4),
        Comparison("flat", "1–2 rows/s", "–", 2.0, "at most", 1.5),
        Comparison("a time", "3 s", "–", 3.0, "at most", 5, unit="s"),
        Comparison("absent", "5 rows/s", "–", None, "at least", 10, reason="no such engine"),
        Comparison("for information", "5 rows/s", "–", 1.2),
    ),
    measurements=(Measurement("weft", 2_000_000, (1.0, 2.0, 4.0), results=50, batches=2),),
)


def test_targets_are_judged_in_their_direction() -> None:
    assert [c.met for c in REPORT.comparisons] == [True, False, True, None, None]


@pytest.mark.parametrize("shown", [text(REPORT), REPORT.to_markdown()])
def test_tables_show_targets_and_reasons(shown: str) -> None:
    for expected in (
        "≥ 4.00×",
        "missed",
        "≤ 5.00 s",
        "not measured: no such engine",
        "1.0 M",
        "2,000,000",
    ):
        assert expected in shown


def test_json_holds_every_run() -> None:
    found = json.loads(REPORT.to_json())
    assert found["machine"] == {"cores": "2"}
    assert found["comparisons"][0]["met"] is True
    assert found["comparisons"][3]["value"] is None
    assert found["measurements"][0]["seconds"] == [1.0, 2.0, 4.0]
    assert found["measurements"][0]["rows_per_second"] == 1_000_000
