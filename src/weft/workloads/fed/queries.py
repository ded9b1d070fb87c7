"""The 768 queries of the Fed workload: eight kinds of suspicion, each over two to five transfers.

32 categories of 24 queries each. The first, `pass_on_3` with the constants 1,000,000 and 20 or 10, is
Q1 and Q2 of ARGUS' section 3, with the event time in place of the date. What a kind asks of two
transfers it asks of the first two of three, and so on: joins of the smaller queries serve the larger
ones. Every query bounds the time between its transfers, so that history is bounded.

The text is Spark SQL, and DuckDB runs it as it is, if `ts` is given to it as a timestamp without zone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from weft.workloads.categories import Category, JoinSql, interleaved
from weft.workloads.fed.stream import STREAM

WAYS: Final = (2, 3, 4, 5)
QUERIES: Final = 768
LONGEST_DAYS: Final = 20
"""No two transfers of a match that follow each other are further apart."""

_LARGE = (1_000_000, 500_000, 2_000_000, 250_000, 5_000_000, 750_000)
_MEDIUM = (50_000, 20_000, 100_000, 200_000, 30_000, 500_000)
_LIMITS = (10_000, 5_000, 3_000, 8_000, 4_000, 6_000)
_DAYS = (20, 10, 5, 15)
_FEW_DAYS = (5, 3, 2, 1)
_HOURS = (48, 24, 12, 6)
_HAVENS = "'KY', 'PA', 'CY', 'BS', 'LU', 'AE'"

Kind = Callable[[int, int, int], list[str]]


def pass_on(ways: int, amount: int, days: int) -> list[str]:
    """The receiver of a large transfer passes on half of it or more, and others all of that."""
    conditions = [f"r{n}.type_code = 1000" for n in _numbers(ways)] + [f"r1.amount > {amount}"]
    for n in _numbers(ways)[1:]:
        kept = "r2.amount > 0.5 * r1.amount" if n == 2 else f"r{n - 1}.amount = r{n}.amount"
        conditions += [*_follows(n - 1, n), kept, *_within(n - 1, n, f"{days} DAYS")]
    return conditions


def circle(ways: int, amount: int, days: int) -> list[str]:
    """Most of the money comes back to the account that sent it."""
    conditions = [f"r1.amount > {amount}"]
    for n in _numbers(ways)[1:]:
        conditions += [
            *_follows(n - 1, n),
            f"r{n}.amount > 0.4 * r{n - 1}.amount",
            *_within(n - 1, n, f"{days} DAYS"),
        ]
    return [*conditions, *_follows(ways, 1)]


def structured(ways: int, limit: int, days: int) -> list[str]:
    """One account sends several amounts below a limit within a few days."""
    conditions = []
    for n in _numbers(ways):
        conditions += [f"r{n}.amount >= 2500", f"r{n}.amount < {limit}"]
        if n > 1:
            conditions += [
                f"r1.sbank_aba = r{n}.sbank_aba",
                f"r1.orig_account = r{n}.orig_account",
                f"r{n - 1}.tranid < r{n}.tranid",
                *_within(1, n, f"{days} DAYS"),
            ]
    return conditions


def gather(ways: int, amount: int, days: int) -> list[str]:
    """Several accounts pay to one within a few days, together a large amount."""
    conditions = []
    for n in _numbers(ways):
        conditions.append(f"r{n}.amount > {amount}")
        if n > 1:
            conditions += [
                f"r1.rbank_aba = r{n}.rbank_aba",
                f"r1.benef_account = r{n}.benef_account",
                f"r{n - 1}.orig_account <> r{n}.orig_account",
                f"r{n - 1}.tranid < r{n}.tranid",
                *_within(1, n, f"{days} DAYS"),
            ]
    total = " + ".join(f"r{n}.amount" for n in _numbers(ways))
    return [*conditions, f"{total} > {(ways + 1) * amount}"]


def split(ways: int, amount: int, days: int) -> list[str]:
    """What an account receives goes out again in parts."""
    conditions = [f"r1.amount > {amount}"]
    for n in _numbers(ways)[1:]:
        conditions += [
            *_follows(1, n),
            f"r{n}.amount <= r1.amount",
            f"r{n}.amount > 0.1 * r1.amount",
            *_within(1, n, f"{days} DAYS"),
        ]
        if n > 2:
            conditions.append(f"r{n - 1}.tranid < r{n}.tranid")
    total = " + ".join(f"r{n}.amount" for n in _numbers(ways)[1:])
    return [*conditions, f"{total} >= 0.7 * r1.amount"]


def abroad(ways: int, amount: int, days: int) -> list[str]:
    """Money leaves for a haven and moves on."""
    conditions = [
        "r1.sbank_country = 'US'",
        f"r1.rbank_country IN ({_HAVENS})",
        f"r1.amount > {amount}",
    ]
    for n in _numbers(ways)[1:]:
        conditions += [
            *_follows(n - 1, n),
            f"r{n}.amount > 0.4 * r{n - 1}.amount",
            *_within(n - 1, n, f"{days} DAYS"),
        ]
    return conditions


def shrinking(ways: int, amount: int, days: int) -> list[str]:
    """A chain that keeps a little at every step, counted in days of the calendar."""
    conditions = [f"r1.amount >= {amount}"]
    for n in _numbers(ways)[1:]:
        conditions += [
            *_follows(n - 1, n),
            f"r{n}.amount BETWEEN 0.8 * r{n - 1}.amount AND r{n - 1}.amount",
            f"r{n}.tran_date <= r{n - 1}.tran_date + {days}",
            *_within(n - 1, n, f"{LONGEST_DAYS} DAYS"),
        ]
    return conditions


def rapid(ways: int, amount: int, hours: int) -> list[str]:
    """A chain between different banks, each transfer some hours after the one before: large, or of
    another type than usual."""
    conditions = [f"r1.amount > {amount}", "r1.sbank_name <> r1.rbank_name"]
    for n in _numbers(ways)[1:]:
        conditions += [
            *_follows(n - 1, n),
            f"(r{n}.amount > {amount} OR r{n}.type_code IN (1500, 1600))",
            *_within(n - 1, n, f"{hours} HOURS"),
        ]
    return conditions


_KINDS: tuple[tuple[str, Kind, tuple[int, ...], tuple[int, ...]], ...] = (
    ("pass_on", pass_on, _LARGE, _DAYS),
    ("circle", circle, _MEDIUM, _DAYS),
    ("structured", structured, _LIMITS, _FEW_DAYS),
    ("gather", gather, _MEDIUM, _FEW_DAYS),
    ("split", split, _MEDIUM, _DAYS),
    ("abroad", abroad, _MEDIUM, _DAYS),
    ("shrinking", shrinking, _LARGE, _DAYS),
    ("rapid", rapid, _LARGE, _HOURS),
)


def categories() -> list[Category]:
    """The 32 categories.

    >>> [category.name for category in categories()[:5]]
    ['pass_on_2', 'circle_2', 'structured_2', 'gather_2', 'split_2']
    """
    return [
        Category(
            name=f"{name}_{ways}",
            ways=ways,
            conditions=partial(kind, ways),
            amounts=amounts,
            spans=spans,
            key="tranid",
            stream=STREAM,
        )
        for ways in WAYS
        for name, kind, amounts, spans in _KINDS
    ]


def queries(count: int = QUERIES, seed: int = 1) -> list[JoinSql]:
    """The first queries of the workload, interleaved by category.

    >>> len(queries()), len({query.sql for query in queries()})
    (768, 768)
    """
    return interleaved([category.queries(seed) for category in categories()])[:count]


def varied(count: int = 10_000, seed: int = 1) -> list[JoinSql]:
    """Many queries of the same categories, with constants anywhere between the smallest and largest.

    >>> len({query.sql for query in varied(1000)})
    1000
    """
    kinds = categories()
    per_category = -(-count // len(kinds))
    return interleaved([category.varied(per_category, seed) for category in kinds])[:count]


def _numbers(ways: int) -> range:
    return range(1, ways + 1)


def _follows(one: int, two: int) -> list[str]:
    """The receiver of one transfer sends the other."""
    return [
        f"r{one}.rbank_aba = r{two}.sbank_aba",
        f"r{one}.benef_account = r{two}.orig_account",
    ]


def _within(one: int, two: int, span: str) -> list[str]:
    """One transfer is not after the other, and not much earlier."""
    return [f"r{one}.ts <= r{two}.ts", f"r{two}.ts <= r{one}.ts + INTERVAL {span}"]
