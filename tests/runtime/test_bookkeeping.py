"""The catalog is told of every step, and its copy in the checkpoint replaces a lost one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import weft
from weft.catalog.store import Catalog
from weft.errors import CatalogError
from weft.runtime.api.bookkeeping import Bookkeeping
from weft.runtime.checkpoint.storage import Storage


def plan(version: int, **complete_from: int) -> Any:
    """As much of a plan as is taken down."""
    times = {query_id.replace("_", "@"): time for query_id, time in complete_from.items()}
    return SimpleNamespace(stream=SimpleNamespace(name="s"), version=version, complete_from=times)


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(tmp_path)


def catalog(storage: Storage, name: str = "catalog.db") -> Catalog:
    return Catalog(f"sqlite:///{storage.path(name)}")


def test_a_step_s_counts_reach_the_catalog(storage: Storage) -> None:
    names = catalog(storage)
    names.add_query("a", "SELECT 1")
    books = Bookkeeping(names, storage)
    books.planned("s", plan(1, a_1=60), {"a@1": 5})
    record = names.find("a")
    assert (record.complete_from, record.late) == (60, 5)


def test_what_is_remembered_does_not_grow_with_plans_and_dropped_queries(storage: Storage) -> None:
    names = catalog(storage)
    books = Bookkeeping(names, storage)
    for version in range(1, 101):
        record = names.add_query("passing", "SELECT 1")
        books.planned("s", plan(version), {record.id: version})
        names.drop_query("passing")
    assert {stream: dict(late) for stream, late in books._late.items()} == {"s": {100: 100}}
    assert books._recorded == {"s": (100, {})}


def test_what_the_database_did_not_take_is_told_again(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = catalog(storage)
    names.add_query("a", "SELECT 1")
    books = Bookkeeping(names, storage)

    def gone(self: Catalog, pairs: Mapping[int, int]) -> None:
        raise CatalogError("CATALOG_UNAVAILABLE", url="a database", detail="it is gone")

    with monkeypatch.context() as patched:
        patched.setattr(Catalog, "set_late", gone)
        books.planned("s", plan(1, a_1=60), {"a@1": 5})
    assert names.find("a").late == 0
    books.planned("s", plan(1, a_1=60), {"a@1": 5})
    assert (names.find("a").late, names.find("a").complete_from) == (5, 60)


def test_a_new_plan_tells_the_times_that_are_new(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = catalog(storage)
    for name in "abc":
        names.add_query(name, "SELECT 1")
    books = Bookkeeping(names, storage)
    told: list[dict[int, int]] = []
    tell = Catalog.set_complete_from

    def telling(self: Catalog, times: Mapping[int, int]) -> None:
        told.append(dict(times))
        tell(self, times)

    monkeypatch.setattr(Catalog, "set_complete_from", telling)
    books.planned("s", plan(1, a_1=60, b_2=60), {})
    books.planned("s", plan(2, a_1=60, b_2=70, c_3=80), {})
    assert told == [{1: 60, 2: 60}, {2: 70, 3: 80}]
    assert [record.complete_from for record in names.live()] == [60, 70, 80]

    def gone(self: Catalog) -> int:
        raise CatalogError("CATALOG_UNAVAILABLE", url="a database", detail="it is gone")

    with monkeypatch.context() as patched:  # nothing of this plan is known to be in the database
        patched.setattr(Catalog, "last_change", gone)
        books.planned("s", plan(3, a_1=90, b_2=70, c_3=80), {})
    books.planned("s", plan(3, a_1=90, b_2=70, c_3=80), {})
    assert told[-1] == {1: 90, 2: 70, 3: 80}
    assert [record.complete_from for record in names.live()] == [90, 70, 80]


def test_a_lost_catalog_is_filled_from_the_copy_and_gives_no_number_again(storage: Storage) -> None:
    names = catalog(storage)
    names.add_query("kept", "SELECT 1")
    names.add_query("dropped", "SELECT 2")
    names.drop_query("dropped")
    Bookkeeping(names, storage).save_copy()
    fresh = catalog(storage, "new.db")
    books = Bookkeeping(fresh, storage)
    books.restore_if_lost()
    books.restore_if_lost()
    assert [record.id for record in fresh.live()] == ["kept@1"]
    assert fresh.add_query("next", "SELECT 3").id == "next@3"


@pytest.mark.parametrize(
    "body", ["[]", "{}", '{"format":1,"last":1,"queries":[{"nam":1}]}', "{", '{"format":"x"}']
)
def test_a_copy_of_garbage_is_named(storage: Storage, body: str) -> None:
    storage.put("catalog.json", body.encode())
    with pytest.raises(weft.CheckpointError, match=r"DAMAGED.*catalog\.json"):
        Bookkeeping(catalog(storage), storage).restore_if_lost()


def test_a_copy_of_a_newer_weft_is_refused(storage: Storage) -> None:
    storage.put("catalog.json", json.dumps({"format": 9}).encode())
    with pytest.raises(weft.CheckpointError, match="NEWER_FORMAT"):
        Bookkeeping(catalog(storage), storage).restore_if_lost()
