"""Files of a checkpoint in object storage: puts, the lease, and storage that does not answer."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from tests.objectstore.server import SECRET, ObjectServer

import weft
from weft.errors import CheckpointError, RunError
from weft.runtime.checkpoint.lease import Lease
from weft.runtime.checkpoint.lease_object import LEASE, LeaseObject
from weft.runtime.checkpoint.objects import Conditional, address
from weft.runtime.checkpoint.storage import Storage

pytestmark = pytest.mark.slow


@pytest.fixture
def storage(server: ObjectServer, request: pytest.FixtureRequest) -> Storage:
    return Storage(f"s3://bucket/{request.node.name}/")


def test_files_are_as_in_a_folder(storage: Storage) -> None:
    assert storage.names("") == [] and not storage.exists("a/b.json")
    storage.put("a/b.json", b"{}")
    storage.put("a/b.json", b"[1]")
    assert storage.read_json("a/b.json") == [1] and storage.size("a/b.json") == 3
    entry = storage.write_table("a/c.parquet", pa.table({"x": [1, 2]}))
    storage.verify(entry)
    assert storage.names("a") == ["b.json", "c.parquet"] and storage.names("") == ["a"]
    assert storage.read_table("a/c.parquet").to_pydict() == {"x": [1, 2]}
    storage.delete("a/b.json")
    assert storage.names("a") == ["c.parquet"]
    storage.delete("a")
    assert not storage.exists("a/c.parquet")
    with pytest.raises(FileNotFoundError):
        storage.read("a/c.parquet")


def test_of_many_writers_of_a_new_file_one_wins(storage: Storage) -> None:
    def put(writer: int) -> list[int]:
        own = Storage(storage.uri)
        return [file for file in range(5) if own.put_new(f"{file}.json", b"%d" % writer)]

    with ThreadPoolExecutor(8) as writers:
        won = list(writers.map(put, range(8)))
    assert sorted(file for files in won for file in files) == list(range(5))
    for writer, files in enumerate(won):
        for file in files:
            assert storage.read(f"{file}.json") == b"%d" % writer


def test_a_put_whose_answer_was_lost_counts_when_it_is_repeated(storage: Storage) -> None:
    assert storage.put_new("commit.json", b"ours")
    assert storage.put_new("commit.json", b"ours")
    assert not storage.put_new("commit.json", b"theirs")
    assert storage.read("commit.json") == b"ours"


def test_a_second_writer_is_refused_until_the_first_lets_go(storage: Storage) -> None:
    first, second = quick_lease(storage), quick_lease(storage)
    first.take()
    with pytest.raises(RunError, match=r"in use by process \d+ on"):
        second.take()
    first.check()
    first.let_go()
    second.take()
    assert (first.epoch, second.epoch) == (1, 2)
    second.let_go()


def test_of_many_that_want_a_free_lease_one_gets_it(storage: Storage) -> None:
    leases = [quick_lease(storage) for _ in range(6)]

    def taken(lease: LeaseObject) -> bool:
        try:
            lease.take()
            return True
        except RunError:
            return False

    with ThreadPoolExecutor(6) as processes:
        got = list(processes.map(taken, leases))
    assert sum(got) == 1
    leases[got.index(True)].let_go()


def test_a_holder_that_is_silent_loses_the_lease_and_hears_of_it(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its beats stop, as if its machine hung. It then wants to commit."""
    silent, other = quick_lease(storage), quick_lease(storage)
    monkeypatch.setattr(silent, "_beat_on", lambda: None)
    silent.take()
    began = time.monotonic()
    other.take()
    assert time.monotonic() - began > 1, "it was taken before its time"
    with pytest.raises(CheckpointError, match=r"another process took over .*epoch 2, ours was 1"):
        silent.check()
    other.check()
    other.let_go()


def test_a_holder_whose_process_ended_on_this_machine_is_not_waited_for(storage: Storage) -> None:
    import json
    import subprocess
    import sys

    script = (
        "import os, sys; from weft.runtime.checkpoint.lease import Lease; "
        "from weft.runtime.checkpoint.storage import Storage; "
        "Lease(Storage(sys.argv[1])).acquire(); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", script, storage.uri], timeout=60)
    assert json.loads(storage.read(LEASE))["epoch"] == 1
    lease = Lease(storage)
    began = time.monotonic()
    lease.acquire()
    assert lease.epoch == 2 and time.monotonic() - began < 5
    lease.release()


def test_a_lease_that_could_not_be_given_back_is_free_for_the_same_process(
    storage: Storage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Storage was away when its run ended."""
    first, second = Lease(storage), Lease(storage)
    first.acquire()
    with monkeypatch.context() as away:
        away.setattr(first._holding._objects, "put", _fail)
        first.release()
    began = time.monotonic()
    second.acquire()
    assert second.epoch == 2 and time.monotonic() - began < 2
    second.release()


def _fail(*arguments: object) -> None:
    raise CheckpointError("UNREACHABLE", path="s3://bucket", detail="away")


def test_storage_that_is_away_for_a_moment_is_asked_again(
    storage: Storage, server: ObjectServer
) -> None:
    lease = Lease(storage)
    lease.acquire()
    storage.put("a.json", b"before")
    server.stop()
    back = threading.Timer(1.5, server.start)
    back.start()
    try:
        assert storage.read("a.json") == b"before"
        lease.guarded(lambda: _put(storage))
    finally:
        back.join()
    assert storage.read("b.json") == b"after"
    lease.release()


def _put(storage: Storage) -> None:
    assert storage.put_new("b.json", b"after")


def test_storage_that_stays_away_is_a_clear_error(
    server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_STORAGE_PATIENCE", "0.2")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    storage = Storage("s3://bucket/away")
    said: list[str] = []
    for attempt in (
        lambda: storage.exists("a"),
        lambda: storage.read_json("a"),
        lambda: storage.put("a", b""),
        lambda: storage.put_new("a", b""),
        lambda: storage.read_table("a"),
        lambda: storage.write_table("a", pa.table({"x": [1]})),
        lambda: Lease(storage).acquire(),
    ):
        began = time.monotonic()
        with pytest.raises(CheckpointError) as caught:
            attempt()
        assert caught.value.error_class == "UNREACHABLE" and time.monotonic() - began < 5
        said.append(str(caught.value))
    assert all("s3://bucket/away" in text and SECRET not in text for text in said)


def test_wrong_credentials_are_a_clear_error_that_does_not_show_them(
    server: ObjectServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "the-wrong-secret")
    monkeypatch.setenv("AWS_REGION", "us-west-2")  # pyarrow keeps one client for the same settings
    storage = Storage("s3://bucket/refused")
    for attempt in (lambda: storage.exists("a"), lambda: storage.put_new("a", b"")):
        with pytest.raises(CheckpointError, match="UNREACHABLE") as caught:
            attempt()
        assert "the-wrong-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("s3://key:word@bucket/a", "credentials"),
        ("s3://bucket/a?endpoint_override=localhost", "AWS_ENDPOINT_URL"),
        ("s3:///a", "no bucket"),
    ],
)
def test_addresses_that_cannot_be(uri: str, says: str) -> None:
    with pytest.raises(CheckpointError, match=says) as caught:
        Storage(uri)
    assert "word" not in str(caught.value)


def test_file_systems_without_conditional_puts_hold_no_checkpoint(tmp_path: Path) -> None:
    storage = Storage("mock://folder")
    with pytest.raises(CheckpointError, match="cannot hold a checkpoint"):
        storage.put_new("a", b"")
    assert issubclass(CheckpointError, weft.WeftError)


def quick_lease(storage: Storage) -> LeaseObject:
    """A lease like any other, in less time."""
    return LeaseObject(Conditional(address(storage.uri)), beat=0.4, lasts=2.0)
