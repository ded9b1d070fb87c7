"""Nothing that a user can write or lack ends in a traceback."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from tests.cli.support import PER_MINUTE, YAML, project, weft

LAUGHS = "a0: &a0 [x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12)
)


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("name: a\nstreams: &s\n  bids: *s\n", "weft.yaml:2:10: [PROJECT] "),
        ("streams: &s [*s]\n", "this alias contains itself"),
        (LAUGHS, "with its aliases it has more than 100,000 values"),
        ("name: " + "[" * 5000, "values are nested too deeply"),
        ("name: \x07\n", "this is not valid YAML"),
        ("name: *nowhere\n", "weft.yaml:1:7: [PROJECT] this is not valid YAML: found undefined"),
    ],
    ids=["recursive", "recursive list", "exploding", "deep", "control", "undefined"],
)
def test_yaml_that_cannot_be_read_is_refused_at_once(
    tmp_path: Path, yaml: str, expected: str
) -> None:
    started = time.monotonic()
    result = weft("list", project(tmp_path, yaml))
    assert result.exit_code == 1
    assert expected in result.stderr
    assert len(result.stderr.splitlines()) <= 2
    assert time.monotonic() - started < 20


def test_aliases_that_are_used_with_measure_are_fine(tmp_path: Path) -> None:
    yaml = YAML.replace("    time: ts", "    options: &o {maxFilesPerTrigger: 2}\n    time: ts")
    yaml += (
        "  clicks: {format: json, schema: at TIMESTAMP, options: *o, time: at, watermark: 1 s}\n"
    )
    assert weft("list", project(tmp_path, yaml)).exit_code == 0


def test_a_file_that_is_not_text_is_told(tmp_path: Path) -> None:
    folder = project(tmp_path)
    (folder / "weft.yaml").write_bytes(b"name: \xff\n")
    told = weft("list", folder).stderr
    assert told.startswith("weft.yaml:1:1: [PROJECT] the file is not UTF-8 text: ")


@pytest.mark.parametrize("command", ["check", "run", "explain"])
def test_a_missing_folder_of_queries_is_said(tmp_path: Path, command: str) -> None:
    folder = project(tmp_path)
    shutil.rmtree(folder / "queries")
    result = weft(command, folder)
    assert result.exit_code == 1
    assert "queries: [PROJECT] this folder is missing" in result.output


def test_a_list_says_what_is_wrong_with_the_files_and_shows_the_others(tmp_path: Path) -> None:
    folder = project(tmp_path, hot=PER_MINUTE)
    (folder / "queries" / "bad.sql").write_bytes(b"SELECT \xff")
    result = weft("list", folder)
    assert result.exit_code == 0
    assert "queries/bad.sql: [PARSE_ERROR] the file is not UTF-8 text" in result.stderr
    assert result.stdout.splitlines()[1].startswith("hot\t")


def test_long_names_are_refused_at_their_place(tmp_path: Path) -> None:
    name = "n" * 300
    folder = project(tmp_path, many=f"-- name: fine\n{PER_MINUTE};\n-- name: {name}\n{PER_MINUTE}")
    listed = weft("list", folder)
    assert "queries/many.sql:3:1: [BAD_NAME]" in listed.stderr
    assert [line.split("\t")[0] for line in listed.stdout.splitlines()] == ["query", "fine"]
    sql = tmp_path / "one.sql"
    sql.write_text(PER_MINUTE)
    refused = weft("register", folder, name, sql)
    assert refused.exit_code == 1
    assert "[BAD_NAME]" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_a_folder_that_cannot_be_written_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, *_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as read_only:
        read_only.setattr(Path, "mkdir", refuse)
        result = weft("init", tmp_path / "new")
    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("[FILES] permission denied: ")
    assert str(tmp_path / "new") in line
    (tmp_path / "queries").write_text("a file in the place of the folder")
    (tmp_path / "weft.yaml").write_text(YAML)
    assert "queries: [PROJECT] this folder is missing" in weft("list", tmp_path).stderr


def test_a_query_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    folder = project(tmp_path)
    (folder / "queries" / "hot.sql").mkdir()
    assert "queries/hot.sql: [PROJECT] the file cannot be read" in weft("list", folder).stderr
