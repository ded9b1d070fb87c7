"""Settings are checked when they are given, not when they are used."""

from __future__ import annotations

import math
from typing import Any

import pytest

import weft
from weft.runtime.settings import settings_of, trigger_of


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sink_tries", 0),
        ("sink_tries", 2.5),
        ("sink_tries", True),
        ("sink_tries", "3"),
        ("sink_pause_seconds", -1),
        ("sink_pause_seconds", math.inf),
        ("sink_pause_seconds", math.nan),
        ("sink_pause_seconds", "1 second"),
        ("idle_seconds", -0.1),
        ("idle_seconds", None),
        ("idle_seconds", False),
        ("driver_cap_bytes", -1),
        ("driver_cap_bytes", "1g"),
        ("driver_cap_bytes", 1e9),
        ("lane_cap_bytes", 1000),
        ("lanes", 0),
        ("lanes", -1),
        ("lanes", 2.5),
        ("lanes", True),
        ("lanes", "2"),
        ("lanes", 10**9),
        ("lanes", []),
        ("lanes", [1, 0]),
        ("lanes", [1, -1]),
        ("lanes", [1, math.nan]),
        ("lanes", [math.inf]),
        ("lanes", [10**400]),
        ("lanes", ["1", 2]),
        ("lanes", [True]),
        ("lanes", {1: 2}),
        ("late_joins", "always"),
        ("late_joins", True),
        ("late_joins", ["network"]),
    ],
)
def test_a_value_that_means_nothing_is_refused(name: str, value: Any) -> None:
    with pytest.raises(weft.RunError, match=f"BAD_SETTING.*{name}"):
        settings_of({name: value})


def test_the_least_values_are_taken() -> None:
    least = {"sink_tries": 1, "sink_pause_seconds": 0, "idle_seconds": 0, "driver_cap_bytes": 0}
    settings = settings_of(least)
    assert {name: getattr(settings, name) for name in least} == least


@pytest.mark.parametrize("lanes", [1, 3, [2, 1, 1], (0.5,), None])
def test_lanes_are_a_number_or_weights(lanes: Any) -> None:
    weights = settings_of({"lanes": lanes}).lane_weights(4)
    assert len(weights) == (4 if lanes is None else lanes if isinstance(lanes, int) else len(lanes))
    if not isinstance(lanes, int | None):
        assert weights == tuple(lanes)


def test_an_unknown_setting_is_refused_with_the_known_ones() -> None:
    with pytest.raises(weft.RunError, match=r"UNKNOWN_SETTING.*'sink_trys'.*sink_tries"):
        settings_of({"sink_trys": 3})


@pytest.mark.parametrize(
    "text", ["5 sec", "5", "soon", "", "1 month", "-5 seconds", 5, b"1 second"]
)
def test_a_trigger_is_an_interval(text: Any) -> None:
    with pytest.raises(weft.RunError, match=r"BAD_SETTING.*processingTime"):
        trigger_of(None, text)


def test_triggers_that_spark_takes_are_taken() -> None:
    for text in ("5 seconds", "1 minute", "interval 10 SECONDS", "500 milliseconds", "0 seconds"):
        assert trigger_of(None, text) == {"processingTime": text}
    assert trigger_of(True, None) == {"availableNow": True}
    assert trigger_of(False, None) == trigger_of(None, None) == {"processingTime": "0 seconds"}
