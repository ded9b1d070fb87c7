"""`weft.yaml`: what is read, and what is refused where."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.support import YAML, project, weft

from weft.cli.project.folder import load
from weft.cli.project.problems import InvalidProject
from weft.errors import ProjectError


def problems(folder: Path, yaml: str) -> list[str]:
    with pytest.raises(InvalidProject) as caught:
        load(project(folder, yaml))
    return str(caught.value).splitlines()


def test_a_small_project_has_defaults(tmp_path: Path) -> None:
    found = load(project(tmp_path))
    assert found.name == "tests"
    assert found.checkpoint == str(tmp_path / "checkpoint")
    assert found.sink == "store"
    (stream,) = found.streams
    assert stream.path == str(tmp_path / "data")
    assert (stream.time, stream.watermark) == ("ts", "10 seconds")


def test_options_become_text_and_addresses_stay(tmp_path: Path) -> None:
    yaml = YAML.replace("path: data", "path: s3://bucket/data").replace(
        "    time: ts",
        "    options: {maxFilesPerTrigger: 2, recursiveFileLookup: true}\n    time: ts",
    )
    (stream,) = load(project(tmp_path, yaml)).streams
    assert stream.options == {"maxFilesPerTrigger": "2", "recursiveFileLookup": "true"}
    assert stream.path == "s3://bucket/data"


def test_variables_of_the_environment_are_put_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_TEST_DATA", "elsewhere")
    yaml = YAML.replace("path: data", "path: ${WEFT_TEST_DATA}/bids")
    assert load(project(tmp_path, yaml)).streams[0].path == str(tmp_path / "elsewhere/bids")
    monkeypatch.delenv("WEFT_TEST_DATA")
    assert problems(tmp_path, yaml) == [
        "weft.yaml:5:5: [PROJECT] the environment variable WEFT_TEST_DATA is not set"
    ]


def test_a_relative_sqlite_catalog_is_in_the_project(tmp_path: Path) -> None:
    found = load(project(tmp_path, YAML + "catalog: sqlite:///names.db\n"))
    assert found.catalog == f"sqlite:///{tmp_path}/names.db"


def test_all_that_is_wrong_is_told_at_its_place(tmp_path: Path) -> None:
    yaml = (
        "name: 7up\n"
        "streams:\n"
        "  bids:\n"
        "    format: parquet\n"
        "    tine: ts\n"
        "    watermark: 10\n"
        "sink: kafka\n"
        "settings:\n"
        "  kernels: driver\n"
        "colour: red\n"
    )
    found = problems(tmp_path, yaml)
    assert len(found) == 7
    assert found[0].startswith("weft.yaml:1:1: [PROJECT] '7up' is not a valid name")
    assert found[1] == "weft.yaml:3:3: [PROJECT] streams.bids needs the key 'time'"
    assert found[2].startswith(
        "weft.yaml:5:5: [PROJECT] 'tine' is not a key here; the keys are format"
    )
    assert "weft.yaml:6:5" in found[3] and "must be a string, not a number" in found[3]
    assert "weft.yaml:7:1" in found[4] and "a sink is store, console" in found[4]
    assert (
        "weft.yaml:9:3" in found[5] and "no setting 'kernels'; the settings are kernel" in found[5]
    )
    assert "weft.yaml:10:1" in found[6] and "'colour' is not a key here" in found[6]


def test_a_weight_of_a_lane_is_refused_at_its_own_place(tmp_path: Path) -> None:
    (tmp_path / "weft.yaml").write_text(YAML + "settings:\n  lanes:\n    - 2\n    - 0\n    - 1\n")
    with pytest.raises(InvalidProject) as caught:
        load(tmp_path)
    [problem] = caught.value.problems
    lines = YAML.count("\n")
    assert (problem.line, problem.column) == (lines + 4, 7)
    assert "the weight of lane 2 cannot be 0" in problem.message


def test_values_of_settings_and_the_trigger_are_checked_at_their_place(tmp_path: Path) -> None:
    yaml = YAML + "trigger: soon\nsettings:\n  sink_tries: 0\n  lanes: 2\n  keep: 1 month\n"
    trigger, tries, keep = problems(tmp_path, yaml)
    assert trigger.startswith("weft.yaml:9:1: [PROJECT] trigger cannot be 'soon': ")
    assert tries == (
        "weft.yaml:11:3: [PROJECT] sink_tries cannot be 0: give a number of tries, 1 or more"
    )
    assert keep.startswith("weft.yaml:13:3: [PROJECT] keep cannot be '1 month': ")


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("name: [a\n", "weft.yaml:2:1: [PROJECT] this is not valid YAML"),
        ("- 1\n", "weft.yaml:1:1: [PROJECT] weft.yaml must be a mapping, not a list"),
        ("", "weft.yaml:1:1: [PROJECT] weft.yaml must be a mapping, not nothing"),
        (YAML + "name: again\n", "weft.yaml:9:1: [PROJECT] 'name' is given twice"),
        ("name: a\nstreams: {}\n", "weft.yaml:2:1: [PROJECT] streams is empty"),
    ],
)
def test_a_document_of_the_wrong_form(tmp_path: Path, yaml: str, expected: str) -> None:
    assert problems(tmp_path, yaml)[0].startswith(expected)


def test_a_folder_without_a_project_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=r"there is no weft\.yaml in .*; `weft init"):
        load(tmp_path)


@pytest.mark.parametrize("command", ["check", "list", "explain", "run"])
def test_every_command_ends_with_one_line_and_code_one(tmp_path: Path, command: str) -> None:
    result = weft(command, tmp_path)
    assert result.exit_code == 1
    told = [line for line in result.stderr.splitlines() if not line.endswith(" …")]
    assert len(told) == 1
    assert told[0].startswith("[PROJECT] ")


def test_usage_errors_end_with_code_two(tmp_path: Path) -> None:
    assert weft("results", tmp_path).exit_code == 2
    assert weft("explain", tmp_path, "--colour").exit_code == 2
    assert weft("bench", "nothing").exit_code == 2
