"""Filter-and-route rules on the transfers: many selections of one stream, without joins.

Four kinds in turn: an account, a range of amounts of a type, a beginning of a bank's name with a large
amount, a list of accounts. Together a thousand rules pass about one transfer in a hundred.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from weft.workloads.fed.stream import COUNTRIES, STREAM, TYPES, bank_names

_ACCOUNTS = 12_000
_FIRST_ACCOUNT = 10_000


@dataclass(frozen=True)
class RuleSql:
    """A rule as text."""

    name: str
    condition: str

    @property
    def sql(self) -> str:
        return (
            f"SELECT tranid, ts, amount, orig_account, benef_account FROM {STREAM} "
            f"WHERE {self.condition}"
        )


def filter_rules(count: int = 1000, seed: int = 1) -> list[RuleSql]:
    """`count` different rules.

    >>> rules = filter_rules(8)
    >>> len({rule.sql for rule in rules})
    8
    """
    draw = random.Random(f"rules {seed}")
    conditions: dict[str, None] = {}
    kinds = (_account, _amounts, _bank, _accounts)
    while len(conditions) < count:
        conditions[kinds[len(conditions) % len(kinds)](draw, count)] = None
    return [RuleSql(f"rule_{number:04d}", text) for number, text in enumerate(conditions)]


def _account(draw: random.Random, count: int) -> str:
    return f"benef_account = {_number(draw)} AND rbank_country <> '{COUNTRIES[0]}'"


def _amounts(draw: random.Random, count: int) -> str:
    """A range whose share of the transfers falls with the number of rules."""
    low = round(10 ** draw.uniform(5, 6.5))
    width = max(1, low * 100 // count // 50)
    return f"type_code = {draw.choice(TYPES)} AND amount BETWEEN {low} AND {low + width}"


def _bank(draw: random.Random, count: int) -> str:
    start = draw.choice(bank_names()).rsplit(" ", 1)[0]
    return f"rbank_name LIKE '{start}%' AND amount > {draw.randint(10, 100) * 1_000_000}"


def _accounts(draw: random.Random, count: int) -> str:
    listed = ", ".join(str(_number(draw)) for _ in range(3))
    country = draw.choice(COUNTRIES[1:])
    return f"orig_account IN ({listed}) AND sbank_country = '{country}'"


def _number(draw: random.Random) -> int:
    return _FIRST_ACCOUNT + draw.randrange(_ACCOUNTS)
