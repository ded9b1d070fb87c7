"""Constants that were measured, and a file that makes no sense."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from weft.optimizer.windows.calibration import Constants, calibrated, save


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "cache" / "calibration.json"
    monkeypatch.setenv("WEFT_CALIBRATION", str(path))
    calibrated.cache_clear()
    yield path
    calibrated.cache_clear()


def test_what_was_saved_is_used(file: Path) -> None:
    assert calibrated() == Constants()
    assert save(Constants(1.0, 2.0, 3.0, 4.0)) == file
    assert calibrated() == Constants(1.0, 2.0, 3.0, 4.0)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"row": 1}', '{"row": "x"}'])
def test_a_file_without_sense_is_as_none(file: Path, text: str) -> None:
    file.parent.mkdir()
    file.write_text(text)
    assert calibrated() == Constants()


def test_constants_are_positive(file: Path) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        Constants(row=0.0)
    file.parent.mkdir()
    file.write_text('{"row": -1, "coalesce": 1, "scan": 1, "result": 1}')
    assert calibrated() == Constants()
