"""The lease in object storage, on a clock and a storage of the test's own."""

from __future__ import annotations

import json

import pytest

from weft.errors import CheckpointError, RunError
from weft.runtime.checkpoint import lease_object
from weft.runtime.checkpoint.lease_object import LEASE, LeaseObject, lived_seconds
from weft.runtime.checkpoint.objects import patience

UNREACHABLE = CheckpointError("UNREACHABLE", path="s3://bucket", detail="away")


class Objects:
    """Storage as `Conditional` has it. `lost`: how many answers to puts get lost on their way."""

    def __init__(self) -> None:
        self.stored: dict[str, tuple[bytes, str]] = {}
        self.lost = 0
        self._puts = 0

    def get(self, name: str) -> tuple[bytes, str] | None:
        return self.stored.get(name)

    def put(self, name: str, data: bytes, tag: str | None) -> str | None:
        there = self.stored.get(name)
        if (there[1] if there else None) != tag:
            return there[1] if there and there[0] == data else None
        self._puts += 1
        self.stored[name] = (data, f"tag {self._puts}")
        if self.lost:
            self.lost -= 1
            raise UNREACHABLE
        return self.stored[name][1]

    def body(self) -> dict[str, object]:
        body: dict[str, object] = json.loads(self.stored[LEASE][0])
        return body


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def no_beats(monkeypatch: pytest.MonkeyPatch) -> None:
    """A holder is renewed only by its own checks, and who waits does so for a moment."""
    monkeypatch.setattr(LeaseObject, "_beat_on", lambda lease: None)
    monkeypatch.setattr(lease_object, "_let_go", set())


def lease(objects: Objects, clock: Clock) -> LeaseObject:
    return LeaseObject(objects, lasts=0.05, clock=clock)  # type: ignore[arg-type]


def test_a_holder_that_was_paused_hears_that_another_one_took_over() -> None:
    objects, clock = Objects(), Clock()
    paused, other = lease(objects, clock), lease(objects, clock)
    paused.take()
    other.take()
    clock.now += 3600
    with pytest.raises(CheckpointError, match=r"epoch 2, ours was 1"):
        paused.check()
    other.check()
    assert objects.body()["epoch"] == 2


def test_the_clock_of_a_holder_counts_while_its_machine_sleeps() -> None:
    """Where it does not, a holder that slept takes its lease for fresh."""
    import time

    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    if boot_time is None:
        pytest.skip("this system has no such clock")
    before = time.clock_gettime(boot_time)
    assert before <= lived_seconds() <= time.clock_gettime(boot_time)


def test_a_beat_whose_answer_was_lost_is_no_loss() -> None:
    objects, clock = Objects(), Clock()
    holder = lease(objects, clock)
    holder.take()
    clock.now += 60
    objects.lost = 1
    with pytest.raises(CheckpointError, match="UNREACHABLE"):
        holder.check()
    holder.check()
    assert objects.body()["epoch"] == 1 and objects.body()["beat"] == 3
    before = objects.stored[LEASE]
    holder.check()
    assert objects.stored[LEASE] == before, "it was renewed just now"


def test_a_check_after_the_end_does_not_take_the_lease_back() -> None:
    objects, clock = Objects(), Clock()
    holder = lease(objects, clock)
    holder.take()
    holder.let_go()
    clock.now += 60
    with pytest.raises(CheckpointError, match="LOST_LEASE"):
        holder.check()
    assert objects.body()["released"] is True


def test_a_lease_that_was_taken_without_an_answer_is_free_for_the_same_process() -> None:
    """Nobody holds it: who took it was told that storage is away."""
    objects, clock = Objects(), Clock()
    objects.lost = 1
    with pytest.raises(CheckpointError, match="UNREACHABLE"):
        lease(objects, clock).take()
    assert objects.body()["epoch"] == 1 and not objects.body()["released"]
    second = LeaseObject(objects, lasts=3600, clock=clock)  # type: ignore[arg-type]
    second.take()
    assert second.epoch == 2


def test_of_two_that_waited_one_gets_the_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    objects, clock = Objects(), Clock()
    lease(objects, clock).take()
    first, second = lease(objects, clock), lease(objects, clock)
    waited = second._awaited(objects.stored[LEASE])
    first.take()
    monkeypatch.setattr(second, "_awaited", lambda stored: waited)
    with pytest.raises(RunError, match="ALREADY_RUNNING"):
        second.take()


@pytest.mark.parametrize("text", ["inf", "nan", "soon"])
def test_a_patience_that_is_no_number_of_seconds(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEFT_STORAGE_PATIENCE", text)
    with pytest.raises(CheckpointError, match="number of seconds"):
        patience()
