"""Aggregation joins over the paper's streams: its own query for any number of inputs, and many that differ.

`papers_query` is that of section 7: SUM of every input's attribute, by the grouping attributes of all inputs that have
groups. `varied` are queries over the two streams `s0` and `s1` that differ in what they group by and in their selections, as
dashboards over the same join do. `drilled` are queries that drill down: with the same selections, by every subset of some columns of `s0`. All have the same windows, so that plain Spark can run them, too (`on_spark`): it joins rows that
lie in equal windows, and groups by the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, product

from weft.workloads.aggjoin.streams import GROUP, JOIN, VALUE

GROUPINGS: tuple[tuple[str, ...], ...] = (
    ("s0.g",),
    ("s1.g",),
    (),
    ("s0.g", "s1.g"),
    ("s0.j",),
    ("substring(s0.g, 1, 3)",),
    ("right(s0.g, 1)",),
    ("substring(s0.g, 1, 3)", "s1.g"),
    ("s1.g", "s0.j"),
    ("right(s1.g, 1)", "right(s0.g, 1)"),
)
SELECTIONS: tuple[str, ...] = (
    "true",
    "s0.a > 50",
    "s0.a <= 20",
    "s1.a > 50",
    "s0.a > 30 AND s1.a < 80",
    "s0.g < 'g075'",
    "s1.a BETWEEN 20 AND 60 AND s0.g > 'g100'",
    "s1.g IN ('g03', 'g07', 'g11')",
    "s0.j <> 'j00' AND s1.a > 10",
    "s0.a % 2 = 0 AND s1.a % 3 = 0",
)
_AGGREGATES = (
    "COUNT(*) AS pairs, SUM(s0.a) AS total",
    "SUM(s0.a) AS total, AVG(s1.a) AS mean",
    "COUNT(*) AS pairs, MAX(s0.a) AS largest, MIN(s1.a) AS least",
)


@dataclass(frozen=True, slots=True)
class WindowJoin:
    """One of the varied queries."""

    name: str
    grouping: tuple[str, ...]
    selection: str
    aggregates: str
    seconds: int
    every: int

    @property
    def sql(self) -> str:
        """The query with a window for each input, for weft."""
        window = f"[WINDOW {self.seconds} SECONDS]"
        grouping = f" GROUP BY {', '.join(self.grouping)}" if self.grouping else ""
        return (
            f"SELECT {self._selected} FROM s0 {window}, s1 {window} "
            f"WHERE s0.{JOIN} = s1.{JOIN} AND {self.selection}{grouping} EVERY {self.every} SECONDS"
        )

    def on_spark(self, relations: Sequence[str]) -> str:
        """The query over two streams with watermarks, for plain Spark: every row is copied into the windows that it is in, and rows of
        equal windows are joined."""
        first, second = (
            f"(SELECT *, window(ts, '{self.seconds} seconds', '{self.every} seconds') AS w "
            f"FROM {relation}) {alias}"
            for relation, alias in zip(relations, ("s0", "s1"), strict=True)
        )
        return (
            f"SELECT s0.w.end AS at, {self._selected} FROM {first} JOIN {second} "
            f"ON s0.{JOIN} = s1.{JOIN} AND s0.w = s1.w WHERE {self.selection} "
            f"GROUP BY {', '.join(['s0.w', *self.grouping])}"
        )

    @property
    def _selected(self) -> str:
        keys = [f"{key} AS k{number}" for number, key in enumerate(self.grouping)]
        return ", ".join([*keys, self.aggregates])


def varied(count: int, seconds: int = 10, every: int = 5) -> list[WindowJoin]:
    """The first so many of the queries: every grouping with every selection.

    >>> [(query.name, query.grouping, query.selection) for query in varied(2)]
    [('join0', ('s0.g',), 'true'), ('join1', ('s1.g',), 's0.a > 50')]
    """
    pairs = [
        (grouping, SELECTIONS[(place + turn) % len(SELECTIONS)])
        for turn, (place, grouping) in product(range(len(SELECTIONS)), enumerate(GROUPINGS))
    ]
    if count > len(pairs):
        raise ValueError(f"there are {len(pairs)} queries, not {count}")
    return [
        WindowJoin(
            f"join{number}",
            grouping,
            selection,
            _AGGREGATES[number % len(_AGGREGATES)],
            seconds,
            every,
        )
        for number, (grouping, selection) in enumerate(pairs[:count])
    ]


DIMENSIONS: tuple[str, ...] = ("s0.g", "substring(s0.g, 1, 3)", "right(s0.g, 1)")


def drilled(selections: int, seconds: int = 10, every: int = 5) -> list[WindowJoin]:
    """Every subset of the dimensions with each of the first so many selections. The set of the finest grouping serves all
    others of the same selection.

    >>> [query.grouping for query in drilled(1)][:2], len(drilled(3))
    ([(), ('right(s0.g, 1)',)], 24)
    """
    subsets = [
        tuple(compress(DIMENSIONS, bits)) for bits in product((False, True), repeat=len(DIMENSIONS))
    ]
    return [
        WindowJoin(
            f"drill{number}",
            grouping,
            selection,
            "COUNT(*) AS pairs, SUM(s0.a) AS total, AVG(s1.a) AS mean",
            seconds,
            every,
        )
        for number, (selection, grouping) in enumerate(product(SELECTIONS[:selections], subsets))
    ]


@dataclass(frozen=True, slots=True)
class PapersQuery:
    """The query of section 7 with windows in seconds."""

    name: str
    sql: str


def papers_query(windows: Sequence[int], grouped: Sequence[bool], every: int) -> PapersQuery:
    """Of a join of streams `s0`, `s1`, …: windows and the time between instants in seconds; which inputs have groups.

    >>> papers_query([50, 50], [True, False], 10).sql
    'SELECT s0.g AS k0, SUM(s0.a) AS a0, SUM(s1.a) AS a1 FROM s0 [WINDOW 50 SECONDS], s1 [WINDOW 50 SECONDS] WHERE s0.j = s1.j GROUP BY s0.g EVERY 10 SECONDS'
    """
    inputs = range(len(windows))
    keys = [number for number in inputs if grouped[number]]
    selected = [f"s{number}.{GROUP} AS k{number}" for number in keys]
    selected += [f"SUM(s{number}.{VALUE}) AS a{number}" for number in inputs]
    relations = ", ".join(f"s{number} [WINDOW {windows[number]} SECONDS]" for number in inputs)
    equal = " AND ".join(f"s{n}.{JOIN} = s{n + 1}.{JOIN}" for n in inputs[:-1])
    grouping = f" GROUP BY {', '.join(f's{n}.{GROUP}' for n in keys)}" if keys else ""
    sql = f"SELECT {', '.join(selected)} FROM {relations} WHERE {equal}{grouping} EVERY {every} SECONDS"
    return PapersQuery("papers", sql)
