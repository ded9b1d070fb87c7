"""What the doctor finds, and that it says what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.support import YAML, project, weft

from weft.cli.machine import doctor


def test_a_machine_that_can_run_weft() -> None:
    result = weft("doctor", "--no-spark", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 0, found
    names = [finding["name"] for finding in found["findings"]]
    assert names[:3] == ["Python", "Java", "worker Python"]
    assert "pandas" in names and "pyspark" in names


def test_no_java_is_found_and_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    result = weft("doctor", "--no-spark")
    assert result.exit_code == 1
    assert "install Java 17 or newer" in result.stdout


@pytest.mark.parametrize(
    ("says", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "21" 2023-09-19', 21),
    ],
)
def test_versions_of_java(tmp_path: Path, says: str, major: int) -> None:
    java = tmp_path / "java"
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(0o755)
    assert doctor.java_version(str(java)) == major


def test_an_old_java_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'java version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    result = weft("doctor", "--no-spark")
    assert result.exit_code == 1
    assert "8 (" in result.stdout


def test_another_python_for_the_workers_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 3.8\n")
    python.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(python))
    result = weft("doctor", "--no-spark", "--json")
    assert result.exit_code == 1
    wrong = [f for f in json.loads(result.stdout)["findings"] if not f["ok"]]
    assert [f["name"] for f in wrong] == ["worker Python"]
    assert "PYSPARK_PYTHON" in wrong[0]["advice"]


def test_a_package_out_of_range_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    real = doctor.version
    monkeypatch.setattr(doctor, "version", lambda n: "3.0.1" if n == "pandas" else real(n))
    result = weft("doctor", "--no-spark", "--json")
    wrong = [f for f in json.loads(result.stdout)["findings"] if not f["ok"]]
    assert [f["name"] for f in wrong] == ["pandas"]
    assert "<3" in wrong[0]["advice"]


def test_a_project_is_looked_at(tmp_path: Path) -> None:
    found = json.loads(weft("doctor", project(tmp_path), "--no-spark", "--json").stdout)
    assert [f["name"] for f in found["findings"]][-2:] == ["weft.yaml", "checkpoint"]
    (tmp_path / "weft.yaml").write_text("name: x")
    result = weft("doctor", tmp_path, "--no-spark")
    assert result.exit_code == 1
    assert "needs the key 'streams'" in result.stdout


def test_a_checkpoint_that_cannot_be_written(tmp_path: Path) -> None:
    folder = project(tmp_path, YAML + "checkpoint: weft.yaml/checkpoint\n")
    result = weft("doctor", folder, "--no-spark", "--json")
    assert result.exit_code == 1
    wrong = [f for f in json.loads(result.stdout)["findings"] if not f["ok"]]
    assert [f["name"] for f in wrong] == ["checkpoint"]
