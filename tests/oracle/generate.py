"""Hypothesis strategies for whole cases: a schema, micro-batches, a delay, and queries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from hypothesis import strategies as st

from .generate_queries import Features, Pools, binds, queries, styles, windows
from .sparktypes import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    SMALLINT,
    STRING,
    TIMESTAMP,
    Type,
    decimal,
)
from .spec import Query
from .values import Value

__all__ = ["Case", "Features", "cases", "pools", "queries", "schemas", "styles", "windows"]

SECOND = 1_000_000
#: From milliseconds to days.
TIME_UNITS = (1_000, 20_000, SECOND, 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND)
MODERN = 1_700_000_000 * SECOND + 123_456
COLUMN_NAMES = ("a", "b", "c", "Mixed", "odd name")

DECIMALS = (decimal(5, 2), decimal(9, 3), decimal(12, 2), decimal(18, 4), decimal(28, 6))
COLUMN_TYPES = (
    BIGINT,
    STRING,
    DOUBLE,
    INT,
    SMALLINT,
    FLOAT,
    BOOLEAN,
    DATE,
    TIMESTAMP,
    *DECIMALS,
)

#: Values that are ordinary, and values that overflow. The extreme bigints are of one sign,
#: so that their average does not depend on the order of additions.
ORDINARY: dict[str, tuple[Value, ...]] = {
    "bigint": (0, 1, 2, 3, -1, 5, 1000, -123456789012),
    "int": (0, 1, 2, 3, -1, 7, -40000),
    "smallint": (0, 1, 2, 3, -1, 100),
    "double": (0.0, 1.0, 0.25, -2.5, 1000.75, 3.0, -0.0, math.nan, math.inf, -math.inf),
    "float": (0.0, 1.0, 0.25, -2.5, 1000.75, 3.0, -0.0, math.nan, math.inf),
    "string": ("a", "b", "", "ab", "A", "ba", "é", "it's", "𝄞", "\uffff"),
    "boolean": (False, True),
    "date": (date(2024, 2, 29), date(1970, 1, 1), date(1969, 12, 31), date(2000, 1, 1)),
    "timestamp": (0, MODERN, -1, -86_400 * SECOND, MODERN + 1),
}
EXTREME: dict[str, tuple[Value, ...]] = {
    "bigint": (2**63 - 1, 2**62, 2**62 + 5),
    "int": (2**31 - 1, -(2**31)),
    "smallint": (2**15 - 1, -(2**15)),
}


@dataclass(frozen=True)
class Case:
    """One experiment: `queries` over `batches` of rows of `schema`."""

    schema: dict[str, Type]
    batches: list[list[dict[str, Value]]]
    delay: int
    queries: tuple[Query, ...]
    ansi: bool

    @property
    def query(self) -> Query:
        """The first query."""
        return self.queries[0]


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, Type]:
    """`ts`, which is the event time, and one to five more columns."""
    kinds = draw(st.lists(st.sampled_from(COLUMN_TYPES), min_size=1, max_size=len(COLUMN_NAMES)))
    return {"ts": TIMESTAMP} | dict(zip(COLUMN_NAMES, kinds, strict=False))


def values(kind: Type, *, hazards: bool) -> st.SearchStrategy[Value]:
    """A value of a type, not NULL."""
    if kind.is_decimal:
        largest = 10**kind.precision - 1
        small = st.integers(-500, 500)
        unscaled = st.one_of(small, st.integers(-largest, largest)) if hazards else small
        return unscaled.map(lambda digits: Decimal(digits).scaleb(-kind.scale))
    ordinary = st.sampled_from(ORDINARY[kind.name])
    if hazards and kind.name in EXTREME:
        return st.one_of(ordinary, st.sampled_from(EXTREME[kind.name]))
    return ordinary


@st.composite
def pools(draw: st.DrawFn, schema: Mapping[str, Type], *, hazards: bool) -> Pools:
    """For each column but the event time, the few values that its rows take."""
    found: dict[str, list[Value]] = {}
    for name, kind in schema.items():
        if name == "ts":
            continue
        drawn = draw(st.lists(values(kind, hazards=hazards), min_size=1 + hazards, max_size=5))
        found[name] = [*drawn, None] if draw(st.booleans()) else drawn
    return found


@dataclass(frozen=True)
class Timeline:
    """Where the event times of a case lie, in quarters of a unit around a base.

    Each batch moves on by `stride` quarters; its rows lie up to `spread` around that.
    """

    unit: int
    base: int
    stride: int
    spread: int

    def time(self, batch: int, tick: int, beside: int) -> int:
        """The event time of a row, on an edge of some window or some microseconds beside."""
        quarter = max(self.unit // 4, 1)
        return self.base + (batch * self.stride + tick) * quarter + beside


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    """Modern times, times around 1970, or times before it."""
    unit = draw(st.sampled_from(TIME_UNITS))
    base = draw(st.sampled_from([MODERN // unit * unit, MODERN, 0, 4 * unit, -3 * unit]))
    stride = draw(st.sampled_from([16, 6, 40, 0]))
    return Timeline(unit, base, stride, draw(st.sampled_from([6, 16, 2])))


@st.composite
def batches(
    draw: st.DrawFn, schema: Mapping[str, Type], known: Pools, timeline: Timeline
) -> list[list[dict[str, Value]]]:
    """One to five batches of up to thirty rows; some empty, some with rows drawn twice."""
    names = [name for name in schema if name != "ts"]
    row = st.tuples(
        st.integers(-timeline.spread, timeline.spread),
        st.sampled_from([0, 0, 0, -1, 1, 999, None] if draw(st.booleans()) else [0, -1, 1, 999]),
        *(st.sampled_from(known[name]) for name in names),
    )
    few, many = st.lists(row, max_size=8), st.lists(row, min_size=6, max_size=24)
    found = []
    for position in range(draw(st.integers(1, 5))):
        rows = draw(few) if draw(st.booleans()) else draw(many)
        repeated = draw(st.integers(0, 6)) if draw(st.booleans()) else 0
        found.append(
            [
                {"ts": None if beside is None else timeline.time(position, tick, beside)}
                | dict(zip(names, cells, strict=True))
                for tick, beside, *cells in rows + rows[:repeated]
            ]
        )
    return found


@st.composite
def cases(
    draw: st.DrawFn,
    features: Features | None = None,
    *,
    min_queries: int = 1,
    max_queries: int = 1,
) -> Case:
    """A schema, batches, and queries that are valid for them."""
    features = features or Features()
    hazards = features.hazards and not draw(st.booleans())
    features = replace(features, hazards=hazards)
    schema = draw(schemas())
    known = draw(pools(schema, hazards=hazards))
    timeline = draw(timelines())
    columns = {name: kind for name, kind in schema.items() if name != "ts"}
    query = queries(columns, known, timeline.unit, features).filter(
        lambda query: binds(query, schema)
    )
    return Case(
        schema=schema,
        batches=draw(batches(schema, known, timeline)),
        delay=draw(st.sampled_from([0, 1_000, timeline.unit, 3 * timeline.unit])),
        queries=tuple(draw(st.lists(query, min_size=min_queries, max_size=max_queries))),
        ansi=draw(st.booleans()),
    )
