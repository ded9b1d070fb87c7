"""The catalog's database: what changes it, and what is said when it cannot be used."""

from __future__ import annotations

import gc
import sqlite3
import threading
from pathlib import Path

import pytest
from sqlalchemy.pool import QueuePool
from tests.support.race import race

import weft
from weft.catalog import Catalog
from weft.catalog.store import FALLBACK, QUARANTINED


def url(path: Path) -> str:
    return f"sqlite:///{path}"


def test_every_change_of_the_queries_raises_the_revision(tmp_path: Path) -> None:
    catalog = Catalog(url(tmp_path / "catalog.db"))
    other = Catalog(url(tmp_path / "catalog.db"))
    seen = [other.revision()]
    record = catalog.add_query("hot", "SELECT 1")
    seen.append(other.revision())
    catalog.set_status(record.change, QUARANTINED, "it failed")
    seen.append(other.revision())
    catalog.set_late({record.change: 5})
    catalog.set_complete_from({record.change: 60})
    assert other.revision() == seen[-1], "counts are no change of the queries"
    catalog.drop_query("hot")
    seen.append(other.revision())
    assert seen == [0, 1, 2, 3]
    assert catalog.last_change() == 1


def test_live_records_are_those_that_are_found_by_name(tmp_path: Path) -> None:
    """All of them together are read past SQLAlchemy, a single one is not."""
    catalog = Catalog(url(tmp_path / "catalog.db"))
    catalog.add_query("a", "SELECT 'ä'", emit="full")
    catalog.add_query("b", "SELECT 2", FALLBACK, "why", backfill=True)
    catalog.add_query("gone", "SELECT 3")
    catalog.drop_query("gone")
    catalog.set_late({1: 5})
    catalog.set_complete_from({2: -(1 << 62)})
    live = catalog.live()
    assert live == [catalog.find("a"), catalog.find("b")]
    assert [record.backfill for record in live] == [False, True]
    assert type(live[1].backfill) is bool


def test_changes_of_one_transaction_are_all_or_none(tmp_path: Path) -> None:
    catalog = Catalog(url(tmp_path / "catalog.db"))
    catalog.add_query("a", "SELECT 1")

    def replace_a() -> None:
        with catalog.transaction():
            catalog.drop_query("a")
            catalog.add_query("b", "SELECT 1")
            catalog.add_query("b", "SELECT 2")

    with pytest.raises(weft.CatalogError, match="DUPLICATE_NAME"):
        replace_a()
    assert [record.name for record in catalog.live()] == ["a"]


def test_reading_waits_for_no_writer(tmp_path: Path) -> None:
    catalog = Catalog(url(tmp_path / "catalog.db"))
    names: list[str] = []
    with catalog.transaction():
        catalog.add_query("a", "SELECT 1")
        reader = threading.Thread(
            target=lambda: names.extend(record.name for record in catalog.live())
        )
        reader.start()
        reader.join(10)
        assert not reader.is_alive()
    assert names == []
    assert [record.name for record in catalog.live()] == ["a"]


def test_a_name_of_300_characters_is_refused(tmp_path: Path) -> None:
    catalog = Catalog("sqlite://")
    with pytest.raises(weft.CatalogError, match=r"BAD_NAME.*300 characters, and 128 are allowed"):
        catalog.add_query("x" * 300, "SELECT 1")
    assert catalog.add_query("x" * 128, "SELECT 1").change == 1


def test_garbage_is_named_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    path.write_bytes(b"x" * 5000)
    with pytest.raises(
        weft.CheckpointError, match=r"CATALOG_DAMAGED.*not a database.*move it away"
    ):
        Catalog(url(path))
    assert path.read_bytes() == b"x" * 5000


def test_garbage_in_a_stream_s_schema_is_named(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    catalog = Catalog(url(path))
    connection = sqlite3.connect(path)
    for text in ("no JSON", "[]", '{"name":"s"}', '{"is":"field","name":"s","type":"int"}'):
        connection.execute("DELETE FROM streams")
        connection.execute("INSERT INTO streams VALUES ('s', ?)", (text,))
        connection.commit()
        with pytest.raises(weft.CheckpointError, match=r"CATALOG_DAMAGED.*stream 's'"):
            catalog.streams()
    connection.close()


def test_a_url_that_is_none_is_refused() -> None:
    for text in ("nonsense", "nosuch://user:secret@host/db", "sqlite:////no/such/folder/c.db"):
        with pytest.raises(weft.CatalogError) as refused:
            Catalog(text)
        assert refused.value.error_class in ("BAD_CATALOG_URL", "CATALOG_UNAVAILABLE")
        assert "secret" not in str(refused.value)


def test_a_closed_catalog_says_so(tmp_path: Path) -> None:
    catalog = Catalog(url(tmp_path / "catalog.db"))
    catalog.close()
    with pytest.raises(weft.CatalogError, match="CLOSED"):
        catalog.live()


def test_of_four_processes_that_make_the_catalog_and_register_one_name_one_wins(
    tmp_path: Path,
) -> None:
    prepare = "from weft.catalog import Catalog\nfrom weft.errors import CatalogError"
    act = (
        "for path in sys.argv[1:]:\n"
        "    try:\n"
        "        print(Catalog(path).add_query('hot', 'SELECT 1').id)\n"
        "    except CatalogError as error:\n"
        "        print(error.error_class)"
    )
    paths = [url(tmp_path / f"catalog{number}.db") for number in range(10)]
    outcomes = race(prepare, act, paths)
    assert [outcome.errors for outcome in outcomes] == [""] * 4
    answers = zip(*(outcome.output.split() for outcome in outcomes), strict=True)
    assert [sorted(of_catalog) for of_catalog in answers] == [
        ["DUPLICATE_NAME"] * 3 + ["hot@1"]
    ] * 10
    for path in paths:
        catalog = Catalog(path)
        assert [record.id for record in catalog.live()] == ["hot@1"]
        catalog.close()


def test_a_forgotten_catalog_leaves_no_connection_open(tmp_path: Path) -> None:
    catalog = Catalog(url(tmp_path / "catalog.db"))
    pool = catalog._database._engine.pool
    assert isinstance(pool, QueuePool)
    assert pool.checkedin() == 1
    del catalog
    gc.collect()
    assert pool.checkedin() == 0
