"""What a run of the tests is given: a seed of its own, and a temporary folder in memory."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase
from tests.conftest import pytest_runtest_setup
from tests.support import scratch, seeds


def test_temporary_files_are_in_memory_where_there_is_room(tmp_path: Path) -> None:
    assert scratch.parent(tmp_path, needed=1) == tmp_path
    assert scratch.parent(tmp_path, needed=1 << 60) == Path(tempfile.gettempdir())
    assert scratch.parent(tmp_path / "absent", needed=1) == Path(tempfile.gettempdir())


def test_this_run_has_a_folder_that_its_tests_use(tmp_path: Path) -> None:
    folder = Path(tempfile.gettempdir())
    assert tmp_path.is_relative_to(folder)
    assert os.environ["TMPDIR"] == os.environ["SPARK_LOCAL_DIRS"] == str(folder)


def test_folders_of_runs_that_were_killed_are_removed(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (tmp_path / f"weft-tests-{ended.pid}-abc" / "inner").mkdir(parents=True)
    living = tmp_path / f"weft-tests-{os.getpid()}-abc"
    living.mkdir()
    made = scratch.make(tmp_path)
    assert sorted(tmp_path.iterdir()) == sorted([living, made])


def test_random_cases_are_others_under_another_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(seed: str, name: str) -> float:
        monkeypatch.setenv(seeds.VARIABLE, seed)
        return seeds.chance_for(name).random()

    assert drawn("1", "a") == drawn("1", "a")
    assert len({drawn("1", "a"), drawn("2", "a"), drawn("1", "b")}) == 3


def test_a_run_without_a_seed_chooses_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(seeds.VARIABLE, "")
    chosen = seeds.run_seed()
    assert seeds.run_seed() == chosen
    assert os.environ[seeds.VARIABLE] == str(chosen)


def test_hypothesis_draws_by_the_seed_and_keeps_what_failed(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    def drawn(seed: str) -> list[int]:
        numbers: list[int] = []

        @settings(database=None)
        @given(st.integers())
        def draw(number: int) -> None:
            numbers.append(number)

        monkeypatch.setenv(seeds.VARIABLE, seed)
        pytest_runtest_setup(request.node)
        draw()
        return numbers

    assert drawn("1") == drawn("1")
    assert drawn("1") != drawn("2")
    assert isinstance(settings.default.database, DirectoryBasedExampleDatabase)
