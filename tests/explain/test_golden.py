"""Queries in, shared plan out: `tests/golden/NAME.sql` and the text in `NAME.txt` beside it.

`WEFT_REGENERATE=1 pytest tests/explain/test_golden.py` writes the texts anew; read the diff.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from tests.explain.support import explained

GOLDEN = Path(__file__).parent.parent / "golden"
CASES = sorted(GOLDEN.glob("*.sql"))


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.stem)
def test_the_shared_plan_is_the_golden_one(case: Path) -> None:
    found = f"{explained(case.read_text())}\n"
    expected = case.with_suffix(".txt")
    if os.environ.get("WEFT_REGENERATE"):
        expected.write_text(found)
    assert found == expected.read_text()


def test_the_network_in_the_docs_is_the_golden_one() -> None:
    guide = (GOLDEN.parents[1] / "docs" / "explain.md").read_text()
    (shown,) = re.findall(r"```\n(network: .*?)\n```", guide, re.DOTALL)
    golden = (GOLDEN / "network.txt").read_text()
    paragraphs = shown.split("\n\n")
    assert len(paragraphs) == 3
    assert [part for part in paragraphs if part not in golden] == []


def test_every_golden_text_has_its_queries() -> None:
    assert CASES
    assert {path.stem for path in GOLDEN.glob("*.txt")} == {case.stem for case in CASES}
