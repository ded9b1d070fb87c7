"""What the documentation shows runs: the quick start, and the demo in small."""

from __future__ import annotations

import importlib.util
import re
import tempfile
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.cli.support import weft

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_quick_start_gives_every_complete_window(
    tmp_path: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    specification = importlib.util.spec_from_file_location("quickstart", EXAMPLES / "quickstart.py")
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    counts = module.run(spark.newSession(), tmp_path)
    # 10 minutes less 10 s and a half: nine whole minutes, of 5-minute windows those that end there
    assert counts["per_minute"] == 9
    assert counts["hot"] == 9 * 7
    assert "stream bids: 3 queries" in capsys.readouterr().out


@pytest.mark.slow
def test_the_demo_shows_sharing_results_and_rates(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    small = ("--rows", 60_000, "--queries", 24, "--transfers", 12_000, "--patterns", 32)
    result = weft("demo", *small)
    assert result.exit_code == 0, result.output
    text = result.stdout
    assert "registered 24 different queries" in text
    assert re.search(r"stream bids: 24 queries share \d nodes", text)
    assert text.count("bids batch") == 4
    assert "60,000 rows in " in text
    assert "auction_002" in text
    assert "weft ran 24 queries at" in text and "In queries × rows per second" in text
    assert "registered 32 different patterns" in text
    assert re.search(r"80 joins as \d\d join nodes of one network", text)
    assert re.search(r"^   [1-9][\d,]* matches", text, re.MULTILINE)
    assert "pass_on_2_000: money is passed on, 2 transfers" in text
    assert "Directly, 3 of them took" in text
    assert not list(tmp_path.glob("weft-*"))
