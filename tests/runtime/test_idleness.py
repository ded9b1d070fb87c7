"""A stream is idle when Spark has looked for data and found none, and not before."""

from __future__ import annotations

import threading
import time
from typing import Any, cast

import pytest
from pyspark.errors import PySparkRuntimeError
from pyspark.sql.streaming import StreamingQuery

from weft.runtime.run.idleness import Idleness

SECONDS = 30.0


class Source:
    """A query whose data ends when the test says so."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.asked = 0
        self.fails = False

    def processAllAvailable(self) -> None:
        self.asked += 1
        assert self.ended.wait(SECONDS)
        if self.fails:
            raise PySparkRuntimeError("the query failed")

    @property
    def query(self) -> StreamingQuery:
        return cast(StreamingQuery, cast(Any, self))


@pytest.fixture
def source() -> Source:
    return Source()


def answered(idleness: Idleness, source: Source) -> None:
    source.ended.set()
    waiting = idleness._waiting
    assert waiting is not None
    waiting.join(SECONDS)
    assert not waiting.is_alive()


def test_spark_is_asked_once_and_the_answer_comes_when_data_ends(source: Source) -> None:
    idleness, moment = Idleness("s"), time.monotonic()
    assert [idleness.since(source.query, moment) for _ in range(3)] == [False] * 3
    answered(idleness, source)
    assert idleness.since(source.query, moment)
    assert source.asked == 1


def test_an_answer_says_nothing_of_later_moments(source: Source) -> None:
    idleness = Idleness("s")
    idleness.since(source.query, time.monotonic())
    answered(idleness, source)
    later = time.monotonic()
    assert not idleness.since(source.query, later)
    answered(idleness, source)
    assert idleness.since(source.query, later)
    assert source.asked == 2


def test_an_answer_of_one_query_says_nothing_of_the_next(source: Source) -> None:
    idleness, moment = Idleness("s"), time.monotonic()
    idleness.since(source.query, moment)
    answered(idleness, source)
    other = Source()
    assert not idleness.since(other.query, moment)
    answered(idleness, other)


def test_a_query_that_failed_is_not_idle(source: Source) -> None:
    idleness, moment = Idleness("s"), time.monotonic()
    source.fails = True
    idleness.since(source.query, moment)
    answered(idleness, source)
    assert not idleness.since(source.query, moment)
