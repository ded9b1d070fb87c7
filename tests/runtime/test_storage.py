"""What was written to a checkpoint is on disk: the file, and the names of all folders on the way."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from weft.runtime.checkpoint.storage import Storage


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All that is synced, in its order."""
    paths: list[str] = []
    sync = os.fsync

    def recorded(descriptor: int) -> None:
        paths.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", recorded)
    return paths


def folders(synced: list[str], root: Path) -> list[str]:
    return [os.path.relpath(path, root) for path in synced if os.path.isdir(path)]


def test_new_folders_are_durable_with_the_first_file_in_them(
    tmp_path: Path, synced: list[str]
) -> None:
    storage = Storage(tmp_path / "checkpoint")
    assert storage.put_new("streams/s/commits/0.json", b"{}")
    above = ["streams/s/commits", "streams/s", "streams", ".", ".."]
    assert folders(synced, tmp_path / "checkpoint") == above
    synced.clear()
    storage.put("streams/s/commits/1.json", b"{}")
    assert folders(synced, tmp_path / "checkpoint") == ["streams/s/commits"], "the others are known"
    synced.clear()
    storage.put("streams/s/intents/1.json", b"{}")
    assert folders(synced, tmp_path / "checkpoint") == ["streams/s/intents", "streams/s"]


def test_folders_that_another_program_made_are_durable_once_they_are_settled(
    tmp_path: Path, synced: list[str]
) -> None:
    storage = Storage(tmp_path)
    (tmp_path / "results/fallback/alone/0").mkdir(parents=True)
    storage.settle_folder("results/fallback/alone/0")
    assert folders(synced, tmp_path)[:5] == [
        "results/fallback/alone/0",
        "results/fallback/alone",
        "results/fallback",
        "results",
        ".",
    ]


def test_a_folder_that_is_made_while_it_is_listed_is_empty(tmp_path: Path) -> None:
    """Arrow looks twice: whether the folder can be listed, and whether it is there."""
    storage = Storage(tmp_path)
    listed = threading.Event()

    def come_and_go() -> None:
        while not listed.is_set():
            (tmp_path / "published").mkdir()
            (tmp_path / "published").rmdir()

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        assert [storage.names("published") for _ in range(20_000)] == [[]] * 20_000
    finally:
        listed.set()
        thread.join()
