"""Reading the input of `weft qep`: JSON with streams, join, buckets and constants.

Every bad value is told with its place, such as `streams[0].rate`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from weft.cli.papers.json_input import JsonInput, JsonObject, kind_of, number, wrong_keys
from weft.errors import QepError
from weft.optimizer.joinagg.generic_cost import JoinCosts
from weft.optimizer.joinagg.papers_costs import JOINS, Constants
from weft.optimizer.joinagg.statistics import InputStatistics, JoinStatistics

MOST_STREAMS = 32
_KEYS = ("streams", "join", "buckets", "constants")
_NEEDED = ("streams", "join", "buckets")
_OF_A_STREAM = tuple(field.name for field in fields(InputStatistics))
_CONSTANTS = tuple(field.name for field in fields(Constants))


@dataclass(frozen=True)
class QepInput:
    """A join, how it is joined, and what its operators cost."""

    statistics: JoinStatistics
    join: str
    costs: JoinCosts


def read_qep_input(path: Path) -> QepInput:
    """The content of a file; `InvalidProject` with every problem found."""
    file = JsonInput(path, QepError, "BAD_QEP")
    content = file.object_with(_KEYS, _NEEDED)
    problems: list[str] = []
    streams = _streams(content["streams"], problems)
    join = content["join"]
    if join not in tuple(JOINS):
        known = " or ".join(f'"{name}"' for name in JOINS)
        shown = f'"{join}"' if isinstance(join, str) else kind_of(join)
        problems.append(f"join: {known} is needed, not {shown}")
    buckets = _from_one("buckets", content["buckets"], problems)
    constants = _constants(content.get("constants", JsonObject()), problems)
    if problems or buckets is None:
        raise file.invalid(problems)
    statistics = JoinStatistics(tuple(streams), buckets)
    try:
        return QepInput(statistics, join, JOINS[join](statistics, Constants(**constants)))
    except QepError as error:
        raise file.invalid([error.message]) from None


def _streams(value: Any, problems: list[str]) -> list[InputStatistics]:
    if not isinstance(value, list):
        problems.append(f"streams: a list of streams is needed, not {kind_of(value)}")
        return []
    if len(value) < 2:
        problems.append(f"streams: a join has two streams or more, not {len(value)}")
    if len(value) > MOST_STREAMS:
        problems.append(f"streams: a join has {MOST_STREAMS} streams at most, not {len(value)}")
        return []
    streams = []
    for position, stream in enumerate(value):
        place = f"streams[{position}]"
        if not isinstance(stream, JsonObject):
            problems.append(f"{place}: an object is needed, not {kind_of(stream)}")
            continue
        wrong = list(wrong_keys(stream, _OF_A_STREAM, _OF_A_STREAM, place))
        if wrong:
            problems += wrong
            continue
        checked = _stream(place, stream, problems)
        if checked is not None:
            streams.append(checked)
    return streams


def _stream(place: str, stream: Mapping[str, Any], problems: list[str]) -> InputStatistics | None:
    rate = number(f"{place}.rate", stream["rate"], problems, positive=True)
    window = _from_one(f"{place}.window", stream["window"], problems)
    groups = _from_one(f"{place}.groups", stream["groups"], problems)
    selectivity = number(f"{place}.selectivity", stream["selectivity"], problems, positive=True)
    if selectivity is not None and selectivity > 1:
        problems.append(f"{place}.selectivity: {selectivity:g} must be 1 or less")
        return None
    if rate is None or window is None or groups is None or selectivity is None:
        return None
    return InputStatistics(rate, window, groups, selectivity)


def _from_one(place: str, value: Any, problems: list[str]) -> float | None:
    checked = number(place, value, problems, positive=True)
    if checked is not None and checked < 1:
        problems.append(f"{place}: {checked:g} must be 1 or more")
        return None
    return checked


def _constants(value: Any, problems: list[str]) -> dict[str, float]:
    if not isinstance(value, JsonObject):
        problems.append(f"constants: an object is needed, not {kind_of(value)}")
        return {}
    problems += wrong_keys(value, _CONSTANTS, (), "constants")
    constants = {}
    for name in _CONSTANTS:
        if name in value:
            checked = number(f"constants.{name}", value[name], problems, positive=True)
            if checked is not None:
                constants[name] = checked
    return constants
