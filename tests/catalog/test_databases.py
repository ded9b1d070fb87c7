"""The catalog of streams and queries on both databases."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

import weft
from weft.algebra.query import Field, StreamSchema
from weft.catalog import Catalog
from weft.catalog.tables import about

STREAM = StreamSchema("bids", (Field("ts", "timestamp"),), "ts", 10)


@pytest.fixture
def catalog(catalog_url: str) -> Iterator[Catalog]:
    opened = Catalog(catalog_url)
    yield opened
    opened.close()


@pytest.fixture
def other(catalog: Catalog, catalog_url: str) -> Iterator[Catalog]:
    """The same catalog, as another process has it."""
    opened = Catalog(catalog_url)
    yield opened
    opened.close()


def test_what_one_process_writes_another_one_reads(catalog: Catalog, other: Catalog) -> None:
    catalog.put_stream(STREAM)
    catalog.put_stream(STREAM)
    record = catalog.add_query("hot", "SELECT 1")
    assert other.streams() == {"bids": STREAM}
    assert other.live() == [record]
    assert other.revision() == 1
    with pytest.raises(weft.CatalogError, match="DUPLICATE_NAME"):
        other.add_query("hot", "SELECT 2")
    other.drop_query("hot")
    assert catalog.live() == []
    assert other.add_query("hot", "SELECT 3").change > record.change


def test_a_transaction_is_all_or_none(catalog: Catalog, other: Catalog) -> None:
    def failing() -> None:
        with catalog.transaction():
            catalog.add_query("a", "SELECT 1")
            assert other.live() == []
            raise RuntimeError("half-way")

    with pytest.raises(RuntimeError):
        failing()
    assert catalog.live() == []


def test_restored_queries_keep_their_numbers_and_new_ones_get_others(
    catalog: Catalog, catalog_url: str
) -> None:
    record = Catalog("sqlite://").add_query("old", "SELECT 1")
    catalog.restore([record], last=7)
    assert [kept.id for kept in catalog.live()] == ["old@1"]
    assert catalog.add_query("new", "SELECT 2").change == 8


def test_a_newer_catalog_is_refused(catalog: Catalog, catalog_url: str) -> None:
    with catalog._database.writing() as connection:
        connection.execute(sa.update(about).values(version=99))
    with pytest.raises(weft.CheckpointError, match="NEWER_FORMAT"):
        Catalog(catalog_url)
