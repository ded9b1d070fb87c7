"""Categories of join queries: hand-written seeds whose constants vary, as ARGUS makes its workloads.

A category is a number of relation occurrences `r1`, `r2`, … of one stream, and a function from two
constants, an amount and a span of time, to the conditions of WHERE. Its queries are the combinations of
its constants. Queries of a workload are interleaved by category, as in the paper.

All queries of a category have the same text but for their constants. `respelled` writes a query in
another way: other aliases, another order of conditions, sides of comparisons exchanged.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

Conditions = Callable[[int, int], list[str]]


@dataclass(frozen=True)
class JoinSql:
    """A join query as text."""

    name: str
    category: str
    ways: int
    outputs: tuple[str, ...]
    conditions: tuple[str, ...]
    stream: str

    @property
    def sql(self) -> str:
        aliases = ", ".join(f"{self.stream} r{number}" for number in range(1, self.ways + 1))
        return f"SELECT {', '.join(self.outputs)}\nFROM {aliases}\nWHERE " + "\n  AND ".join(
            self.conditions
        )


@dataclass(frozen=True)
class Category:
    """A seed: `count` queries of it have different constants."""

    name: str
    ways: int
    conditions: Conditions
    amounts: tuple[int, ...]
    spans: tuple[int, ...]
    key: str
    """The column that tells the rows apart: the queries select it from every occurrence."""
    stream: str

    def query(self, number: int, amount: int, span: int) -> JoinSql:
        outputs = tuple(f"r{n}.{self.key} AS {self.key}{n}" for n in range(1, self.ways + 1))
        return JoinSql(
            f"{self.name}_{number:03d}",
            self.name,
            self.ways,
            outputs,
            tuple(self.conditions(amount, span)),
            self.stream,
        )

    def queries(self, seed: int) -> list[JoinSql]:
        """All combinations of the constants, in random order."""
        pairs = list(product(self.amounts, self.spans))
        random.Random(f"{self.name} {seed}").shuffle(pairs)
        return [self.query(number, *pair) for number, pair in enumerate(pairs)]

    def varied(self, count: int, seed: int) -> list[JoinSql]:
        """`count` different queries with constants anywhere between the smallest and the largest."""
        draw = random.Random(f"varied {self.name} {seed}")
        low, high = min(self.amounts), max(self.amounts)
        pairs: dict[tuple[int, int], None] = {}
        while len(pairs) < count:
            amount = round(low * (high / low) ** draw.random())
            pairs[amount, draw.randint(min(self.spans), max(self.spans))] = None
        return [self.query(number, *pair) for number, pair in enumerate(pairs)]


def interleaved(lists: Sequence[Sequence[JoinSql]]) -> list[JoinSql]:
    """The first query of every list, then the second ones, and so on."""
    longest = max(map(len, lists))
    return [queries[turn] for turn in range(longest) for queries in lists if turn < len(queries)]


_COMPARISON = re.compile(r"^([^()]*?) (<=|>=|<>|=|<|>) ([^()]*)$")
_TURNED = {"<=": ">=", ">=": "<=", "<": ">", ">": "<", "=": "=", "<>": "<>"}


@dataclass(frozen=True)
class RespelledSql:
    """The text of a query in another spelling, under the same name."""

    name: str
    category: str
    ways: int
    sql: str


def respelled(query: JoinSql, seed: int = 1) -> RespelledSql:
    """The same query, written differently.

    >>> query = JoinSql("q", "c", 1, ("r1.a AS a",), ("r1.a <= 5",), "s")
    >>> "5 >= " in respelled(query, 2).sql or "<= 5" in respelled(query, 2).sql
    True
    """
    draw = random.Random(f"{query.name} {seed}")
    conditions = [_turned(text) if draw.random() < 0.5 else text for text in query.conditions]
    draw.shuffle(conditions)
    sql = replace(query, conditions=tuple(conditions)).sql
    letter = draw.choice("tx")
    return RespelledSql(
        query.name, query.category, query.ways, re.sub(r"\br(\d)\b", rf"{letter}\1", sql)
    )


def _turned(condition: str) -> str:
    """A comparison with its sides exchanged; anything else as it is."""
    match = _COMPARISON.match(condition)
    if match is None or " BETWEEN " in condition or " OR " in condition:
        return condition
    left, sign, right = match.groups()
    return f"{right} {_TURNED[sign]} {left}"
