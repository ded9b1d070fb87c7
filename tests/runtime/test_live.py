"""A run's view of the catalog: one look per tick, none that ends the run, no deadlock."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest

import weft
from weft.catalog.store import ACTIVE, QUARANTINED, REJECTED, Catalog, QueryRecord
from weft.errors import CatalogError, SqlError
from weft.runtime.queries.live import TICK_SECONDS, LiveQueries
from weft.runtime.queries.registry import Registry


class Counting(Catalog):
    """A catalog that counts how often it is read, and can be made to fail."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"sqlite:///{path / 'catalog.db'}")
        self.looks = self.reads = 0
        self.failing = False

    def revision(self) -> int:
        self.looks += 1
        self._answer()
        return super().revision()

    def live(self) -> list[QueryRecord]:
        self.reads += 1
        self._answer()
        return super().live()

    def set_status(self, change: int, status: str, detail: str = "") -> None:
        self._answer()
        super().set_status(change, status, detail)

    def _answer(self) -> None:
        if self.failing:
            raise CatalogError("CATALOG_UNAVAILABLE", url="a database", detail="it is gone")


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def names(records: Any) -> list[str]:
    return [record.name for record in records]


def test_one_look_per_tick_serves_all_who_ask(tmp_path: Path) -> None:
    catalog, clock = Counting(tmp_path), Clock()
    live = LiveQueries(catalog, clock)
    for _ in range(20):
        for _stream in range(5):
            live.now()
        clock.now += 0.05
    assert catalog.looks <= 1 + 1.0 / TICK_SECONDS
    assert catalog.reads == 1


def test_a_change_made_elsewhere_is_seen_after_a_tick_and_at_a_step(tmp_path: Path) -> None:
    catalog, clock = Counting(tmp_path), Clock()
    live = LiveQueries(catalog, clock)
    before = live.now()
    other = Catalog(f"sqlite:///{tmp_path / 'catalog.db'}")
    other.add_query("a", "SELECT 1")
    assert live.now() is before
    clock.now += TICK_SECONDS
    assert names(live.now()) == ["a"]
    other.add_query("b", "SELECT 1")
    assert names(live.look()) == ["a", "b"]
    assert live.now() is live.now(), "the same object as long as nothing changes"


def test_a_change_made_here_is_seen_at_once(tmp_path: Path) -> None:
    catalog = Counting(tmp_path)
    live = LiveQueries(catalog, Clock())
    live.now()
    catalog.add_query("a", "SELECT 1")
    live.changed()
    assert names(live.now()) == ["a"]


def test_a_thread_inside_a_transaction_sees_its_own_changes_and_others_do_not(
    tmp_path: Path,
) -> None:
    catalog = Counting(tmp_path)
    live = LiveQueries(catalog, Clock())
    live.now()
    with catalog.transaction():
        catalog.add_query("a", "SELECT 1")
        live.changed()
        assert names(live.now()) == ["a"]
        seen: list[str] = ["nothing was read"]
        reader = threading.Thread(target=lambda: seen.__setitem__(slice(None), names(live.now())))
        reader.start()
        reader.join(10)
        assert seen == []
    live.changed()
    assert names(live.now()) == ["a"]


def test_a_database_that_does_not_answer_ends_nothing_and_is_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    catalog, clock = Counting(tmp_path), Clock()
    first, second = catalog.add_query("a", "SELECT 1"), catalog.add_query("b", "SELECT 1")
    live = LiveQueries(catalog, clock)
    assert names(live.now()) == ["a", "b"]
    catalog.failing = True
    with caplog.at_level(logging.WARNING, "weft"):
        for _ in range(5):
            clock.now += 1
            assert names(live.now()) == ["a", "b"]
        live.set_status(first.change, QUARANTINED, "it divides by zero")
        statuses = [record.status for record in live.now()]
        assert statuses == [QUARANTINED, ACTIVE], "what could not be written holds here"
        assert len(caplog.records) == 1
        catalog.failing = False
        clock.now += 1
        live.now()
    assert [record.status for record in catalog.live()] == [QUARANTINED, ACTIVE]
    assert catalog.find("a").detail == "it divides by zero"
    assert [record.message for record in caplog.records[1:]] == ["the catalog answers again"]
    assert catalog.find("b").change == second.change


def test_a_status_that_is_written_late_holds_though_others_changed_the_catalog(
    tmp_path: Path,
) -> None:
    """A quarantined query must not be active again for a tick."""
    catalog, clock = Counting(tmp_path), Clock()
    query = catalog.add_query("a", "SELECT 1")
    live = LiveQueries(catalog, clock)
    live.now()
    catalog.failing = True
    live.set_status(query.change, QUARANTINED, "it divides by zero")
    Catalog(f"sqlite:///{tmp_path / 'catalog.db'}").add_query("b", "SELECT 1")
    catalog.failing = False
    assert [record.status for record in live.look()] == [QUARANTINED, ACTIVE]


def test_a_database_that_never_answered_is_an_error(tmp_path: Path) -> None:
    catalog = Counting(tmp_path)
    catalog.failing = True
    with pytest.raises(weft.CatalogError, match="CATALOG_UNAVAILABLE"):
        LiveQueries(catalog).now()


class Unbindable(Registry):
    """A registry all of whose queries are wrong, without Spark."""

    def __init__(self, catalog: Catalog) -> None:
        super().__init__(None, catalog)  # type: ignore[arg-type]
        self.binding = threading.Event()

    def bind(self, name: str, *registered: object, **options: object) -> Any:
        self.binding.set()
        raise SqlError("PARSE_ERROR", query=name, detail="it is wrong")


def test_a_stream_that_rejects_a_query_and_a_thread_that_changes_many_do_not_wait_for_each_other(
    tmp_path: Path,
) -> None:
    """The stream holds what it needs of the registry and waits for the database, which the other
    thread holds until it has got through the registry."""
    catalog = Catalog(f"sqlite:///{tmp_path / 'catalog.db'}")
    catalog.add_query("wrong", "SELECT")
    registry = Unbindable(catalog)
    registry.live()
    stream = threading.Thread(target=lambda: registry.shared("s"), daemon=True)
    changed = threading.Event()

    def change_many() -> None:
        with catalog.transaction():
            record = catalog.add_query("another", "SELECT 1")
            stream.start()
            assert registry.binding.wait(10)
            stream.join(0.5)
            registry.put(record, None)  # type: ignore[arg-type]
            registry.changed()
            registry.live()
            changed.set()

    changing = threading.Thread(target=change_many, daemon=True)
    changing.start()
    assert changed.wait(10), "both threads wait for each other"
    changing.join(10)
    stream.join(10)
    assert not stream.is_alive()
    assert [record.status for record in catalog.live()] == [REJECTED, ACTIVE]


def test_bound_queries_of_dropped_ones_are_forgotten(tmp_path: Path) -> None:
    catalog = Catalog(f"sqlite:///{tmp_path / 'catalog.db'}")
    registry = Unbindable(catalog)
    kept = catalog.add_query("kept", "SELECT 1")
    for number in range(100):
        record = catalog.add_query("passing", "SELECT 1")
        registry.put(record, None)  # type: ignore[arg-type]
        if number % 2:
            registry.live()
        registry.forget(catalog.drop_query("passing"))
        registry.changed()
    other = Catalog(f"sqlite:///{tmp_path / 'catalog.db'}")
    for _ in range(100):
        record = other.add_query("passing", "SELECT 1")
        registry.put(record, None)  # type: ignore[arg-type]
        other.drop_query("passing")
    registry.put(kept, None)  # type: ignore[arg-type]
    last = other.add_query("last", "SELECT 1")
    registry.put(last, None)  # type: ignore[arg-type]
    registry.look()
    registry.live()
    assert sorted(registry._bound) == ["kept@1", "last@202"]
