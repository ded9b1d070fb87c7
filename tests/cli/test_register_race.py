"""Four processes that register one name at the same moment, and what a loser leaves alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.support import PER_MINUTE, project, weft
from tests.support.race import race

from weft.algebra.query import Field, StreamSchema
from weft.catalog import Catalog
from weft.cli.project import registration
from weft.runtime.checkpoint.identity import open_checkpoint
from weft.runtime.checkpoint.storage import Storage

BIDS = StreamSchema(
    "bids",
    (Field("auction", "bigint"), Field("price", "bigint"), Field("ts", "timestamp")),
    "ts",
    10_000_000,
)


def opened_before(folder: Path) -> tuple[Path, Catalog]:
    """A project whose catalog knows the stream, so that registering needs no Spark."""
    project(folder)
    storage = Storage(folder / "checkpoint")
    open_checkpoint(storage, "tests", lanes=2)
    catalog = Catalog(f"sqlite:///{storage.path('catalog.db')}")
    catalog.put_stream(BIDS)
    return folder, catalog


def test_one_of_four_registers_the_name_and_the_others_change_nothing(tmp_path: Path) -> None:
    """All four have found the name free before the first of them writes."""
    folder, catalog = opened_before(tmp_path / "project")
    prepare = """
import os, time
from pathlib import Path
from weft.cli.main import app
from weft.cli.project import registration

folder, sql, *names = sys.argv[1:]
write = registration.write_query

def write_together(queries, name, text):
    arrived = Path(folder) / f"arrived-{name}"
    arrived.mkdir(exist_ok=True)
    (arrived / str(os.getpid())).touch()
    while len(list(arrived.iterdir())) < 4:
        time.sleep(0.001)
    return write(queries, name, text)

registration.write_query = write_together
"""
    act = """
for name in names:
    file = Path(folder) / f"{name}-{os.getpid()}.sql"
    file.write_text(sql.replace("COUNT(*)", f"COUNT(*) + {os.getpid()}"))
    sys.argv[1:] = ["register", folder, name, str(file)]
    try:
        app()
    except SystemExit as end:
        print("exit", name, end.code, os.getpid(), flush=True)
"""
    names = [f"hot{number}" for number in range(5)]
    outcomes = race(prepare, act, [folder, PER_MINUTE, *names])
    for name in names:
        ends = [
            line.split()[2:]
            for outcome in outcomes
            for line in outcome.output.splitlines()
            if line.startswith(f"exit {name} ")
        ]
        winners = [process for code, process in ends if code == "0"]
        assert len(ends) == 4, outcomes
        assert len(winners) == 1, outcomes
        text = (folder / "queries" / f"{name}.sql").read_text()
        assert f"COUNT(*) + {winners[0]} " in text
        assert catalog.find(name).sql.strip() == text.strip()
    errors = [line for outcome in outcomes for line in outcome.errors.splitlines()]
    assert len(errors) == 3 * len(names)
    assert all(line.startswith("[DUPLICATE_NAME]") for line in errors), errors
    assert len(catalog.live()) == len(names)
    assert len(list((folder / "queries").iterdir())) == len(names), "nothing else is left behind"


def test_a_process_that_begins_to_run_the_project_in_between_keeps_the_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It finds the file and registers the query itself, before the one that wrote the file."""
    folder, catalog = opened_before(tmp_path / "project")
    write = registration.write_query

    def write_and_be_overtaken(queries: Path, name: str, sql: str) -> Path:
        path = write(queries, name, sql)
        catalog.add_query(name, path.read_text())
        return path

    monkeypatch.setattr(registration, "write_query", write_and_be_overtaken)
    (tmp_path / "q.sql").write_text(PER_MINUTE)
    assert weft("register", folder, "hot", tmp_path / "q.sql").exit_code == 0
    assert (folder / "queries/hot.sql").is_file()
    assert len(catalog.live()) == 1


def test_a_file_that_holds_other_queries_is_not_replaced(tmp_path: Path) -> None:
    folder, _ = opened_before(tmp_path / "project")
    mixed = folder / "queries/hot.sql"
    mixed.write_text(f"-- name: a\n{PER_MINUTE};\n")
    (tmp_path / "q.sql").write_text(PER_MINUTE)
    result = weft("register", folder, "hot", tmp_path / "q.sql")
    assert result.exit_code == 1
    assert "queries/hot.sql" in result.stderr
    assert "-- name: a" in mixed.read_text()


def test_a_catalog_of_garbage_and_a_long_name_are_one_line_each(tmp_path: Path) -> None:
    folder, catalog = opened_before(tmp_path / "project")
    (tmp_path / "q.sql").write_text(PER_MINUTE)
    result = weft("register", folder, "x" * 300, tmp_path / "q.sql")
    assert result.exit_code == 1
    assert result.stderr.startswith("[BAD_NAME]")
    assert result.stderr.count("\n") == 1
    catalog.close()
    for file in (folder / "checkpoint").glob("catalog.db*"):
        file.unlink()
    (folder / "checkpoint/catalog.db").write_bytes(b"x" * 5000)
    for command in (["list", folder], ["register", folder, "hot", tmp_path / "q.sql"]):
        result = weft(*command)
        assert result.exit_code == 1
        assert result.stderr.startswith("[CATALOG_DAMAGED]")
        assert result.stderr.count("\n") == 1
