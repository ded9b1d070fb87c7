"""Each pass of the optimizer off, then on: `passes/NAME.sql`, and its plan without and with NAME.

`WEFT_REGENERATE=1 pytest tests/golden` writes the texts anew; read the diff. That both plans give the
same rows is shown in `test_execution`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.explain.support import explained
from tests.golden.support import SHARING, without

from weft.algebra.plan import PASS_NAMES
from weft.optimizer.weaving import WindowWeaving

CASES = Path(__file__).parent / "passes"


@pytest.mark.parametrize("name", PASS_NAMES)
def test_the_plan_without_and_with_a_pass(name: str) -> None:
    sql = (CASES / f"{name}.sql").read_text()
    texts = {}
    for switch, sharing in (("off", without(name)), ("on", SHARING)):
        golden = CASES / f"{name}.{switch}.txt"
        texts[switch] = f"{explained(sql, weaving=WindowWeaving(sharing))}\n"
        if os.environ.get("WEFT_REGENERATE"):
            golden.write_text(texts[switch])
        assert texts[switch] == golden.read_text()
    assert texts["off"] != texts["on"]


def test_every_pass_has_a_case() -> None:
    assert {path.stem for path in CASES.glob("*.sql")} == set(PASS_NAMES)
