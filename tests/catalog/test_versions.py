"""Catalogs of older versions are brought up to date in one piece; newer ones are refused."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

import weft
from weft.algebra.query import Field, StreamSchema
from weft.catalog import Catalog, migrations
from weft.catalog.tables import metadata

VERSION_1 = """
CREATE TABLE streams (name VARCHAR NOT NULL, schema TEXT NOT NULL, PRIMARY KEY (name));
CREATE TABLE queries (
    change INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, name VARCHAR NOT NULL, sql TEXT NOT NULL,
    status VARCHAR NOT NULL, detail TEXT NOT NULL, complete_from BIGINT, late BIGINT NOT NULL,
    registered DATETIME NOT NULL, dropped DATETIME);
CREATE UNIQUE INDEX queries_live_name ON queries (name) WHERE dropped IS NULL;
CREATE INDEX queries_by_name ON queries (name);
INSERT INTO streams VALUES ('bids', '{"delay":10,"fields":[{"is":"Field","name":"ts",
    "type":"timestamp"}],"is":"StreamSchema","name":"bids","time":"ts"}');
INSERT INTO queries VALUES (3, 'hot', 'SELECT 1', 'active', '', 60, 5, '2024-01-01 00:00:00', NULL);
INSERT INTO queries VALUES (4, 'cold', 'SELECT 2', 'active', '', NULL, 0, '2024-01-01 00:00:00',
    '2024-01-02 00:00:00');
"""


@pytest.fixture
def version_1(tmp_path: Path) -> Path:
    path = tmp_path / "catalog.db"
    connection = sqlite3.connect(path)
    connection.executescript(VERSION_1)
    connection.close()
    return path


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def relations(path: Path) -> dict[str, list[str]]:
    """All columns by table, and the names of indexes."""
    engine = sa.create_engine(url(path))
    inspector = sa.inspect(engine)
    shape = {
        table: [c["name"] for c in inspector.get_columns(table)]
        + sorted(str(index["name"]) for index in inspector.get_indexes(table))
        for table in inspector.get_table_names()
        if not table.startswith("sqlite_")
    }
    engine.dispose()
    return shape


def test_a_catalog_of_version_1_is_migrated_with_all_it_holds(version_1: Path) -> None:
    catalog = Catalog(url(version_1))
    assert catalog.streams() == {
        "bids": StreamSchema("bids", (Field("ts", "timestamp"),), "ts", 10)
    }
    (record,) = catalog.live()
    assert (record.id, record.sql, record.complete_from, record.late) == (
        "hot@3",
        "SELECT 1",
        60,
        5,
    )
    assert catalog.add_query("cold", "SELECT 3").change == 5
    catalog.close()
    again = Catalog(url(version_1))
    assert [record.id for record in again.live()] == ["hot@3", "cold@5"]
    again.close()


def test_a_migrated_catalog_has_the_relations_of_a_new_one(version_1: Path, tmp_path: Path) -> None:
    Catalog(url(version_1)).close()
    Catalog(url(tmp_path / "new.db")).close()
    assert relations(version_1) == relations(tmp_path / "new.db")
    assert relations(version_1).keys() == metadata.tables.keys()


def test_a_migration_that_fails_changes_nothing(
    version_1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(connection: Connection) -> None:
        connection.execute(sa.text("CREATE TABLE half (x INTEGER)"))
        connection.execute(sa.text("DELETE FROM queries"))
        raise RuntimeError("half-way")

    before = relations(version_1)
    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, fail))
    with pytest.raises(RuntimeError, match="half-way"):
        Catalog(url(version_1))
    assert relations(version_1) == before
    monkeypatch.undo()
    catalog = Catalog(url(version_1))
    assert [record.id for record in catalog.live()] == ["hot@3"]
    catalog.close()


def test_several_migrations_run_in_their_order(
    version_1: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = migrations.newest()

    def to_next_version(connection: Connection) -> None:
        connection.execute(sa.text("UPDATE weft_catalog SET revision = 70"))

    monkeypatch.setattr(migrations, "MIGRATIONS", (*migrations.MIGRATIONS, to_next_version))
    catalog = Catalog(url(version_1))
    assert catalog.revision() == 70
    catalog.close()
    monkeypatch.undo()
    with pytest.raises(
        weft.CheckpointError, match=rf"NEWER_FORMAT.*format {newest + 1}, .* up to {newest}.*Update"
    ):
        Catalog(url(version_1))


def test_a_refused_newer_catalog_is_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    catalog = Catalog(url(path))
    catalog.add_query("hot", "SELECT 1")
    catalog.close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE weft_catalog SET version = 99")
    connection.commit()
    with pytest.raises(weft.CheckpointError, match="NEWER_FORMAT"):
        Catalog(url(path))
    assert connection.execute("SELECT version, revision FROM weft_catalog").fetchall() == [(99, 1)]
    connection.close()
