"""A stream of wire transfers between bank accounts, in the order of time.

Most transfers are unrelated: two accounts by popularity, an amount by a log-normal distribution. One in
eight belongs to a *scheme*, the shapes that fraud queries look for:

- relay: an account passes on what it received, often at once and often the same amount again;
- circle: the last account of a relay is the first;
- split: what came in goes out in two to four parts;
- gather: two to five accounts pay to one;
- structured: one account sends several amounts just below a limit.

Steps of a scheme are hours or days apart. So chains of two to six transfers exist at a steady rate,
and queries have answers that do not grow with the length of the stream. An account belongs to a bank;
account numbers are unique only within their bank.

In NumPy, seeded: half a million transfers take about a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from weft.workloads.columns import (
    DAY,
    Integers,
    dates,
    decimals,
    drawn,
    micros_of,
    strings,
    timestamps,
    zipf,
)
from weft.workloads.stored import StoredStream, store_table

STREAM = "transfers"
TIME = "ts"
WATERMARK = "1 hour"
RECORDS = 500_000
HISTORY = 300_000
INCREMENT = 4_000
PER_DAY = 5_000
BASE = datetime(2024, 1, 1, tzinfo=UTC)

ACCOUNTS = 200_000
BANKS = 400
ACCOUNT_SKEW = 0.3
BANK_SKEW = 0.7
COUNTRY_SKEW = 0.8
TYPES = (1000, 1500, 1600, 1002, 1090)
TYPE_SHARES = (0.7, 0.1, 0.1, 0.05, 0.05)
COUNTRIES = ("US", "GB", "CH", "DE", "SG", "KY", "PA", "AE", "HK", "LU", "CY", "BS")
AMERICAN = 0.75
"""The share of banks in the United States."""
LIMITS = (300_000, 500_000, 1_000_000)
"""In cents: what structured transfers stay below."""

_SCHEMED = 1 / 8
_LEAD_DAYS = 30
_FIRST = ("First", "Harbor", "Summit", "Union", "Pacific", "Granite", "Liberty", "Meridian")
_SECOND = ("National", "Savings", "Merchants", "Trust", "Valley", "Commerce", "Citizens", "Coastal")
_THIRD = ("Bank", "Bank NA", "Credit", "Holding", "Partners", "Group", "and Sons")


@dataclass(frozen=True)
class _Scheme:
    """Transfers between roles: who pays whom, in this order of time."""

    payers: tuple[int, ...]
    payees: tuple[int, ...]
    kind: str

    @property
    def roles(self) -> int:
        return max(*self.payers, *self.payees) + 1


def _schemes() -> list[_Scheme]:
    relays = [_Scheme(tuple(range(n)), tuple(range(1, n + 1)), "relay") for n in range(2, 7)]
    circles = [_Scheme(tuple(range(n)), (*range(1, n), 0), "circle") for n in range(2, 6)]
    splits = [
        _Scheme((0, *(1 for _ in range(n))), tuple(range(1, n + 2)), "split") for n in (2, 3, 4)
    ]
    gathers = [_Scheme(tuple(range(1, n + 1)), (0,) * n, "gather") for n in range(2, 6)]
    structured = [_Scheme((0,) * n, tuple(range(1, n + 1)), "structured") for n in range(2, 6)]
    return [*relays, *circles, *splits, *gathers, *structured]


@dataclass(frozen=True)
class _Transfers:
    """Transfers as columns, in any order."""

    payer: Integers
    payee: Integers
    cents: Integers
    micros: Integers
    type_code: Integers


def transfers(seed: int = 1, records: int = RECORDS, per_day: int = PER_DAY) -> pa.Table:
    """The first `records` transfers.

    >>> table = transfers(records=1000)
    >>> table.num_rows, table.column_names[:4]
    (1000, ['tranid', 'type_code', 'tran_date', 'ts'])
    """
    random = np.random.default_rng([seed, 12])
    span = records * DAY // per_day
    popularity = zipf(ACCOUNTS, ACCOUNT_SKEW)
    schemed = _schemed(random, round(records * _SCHEMED), span)
    inside = (schemed.micros >= 0) & (schemed.micros < span)
    rest = records - int(inside.sum())
    others = _Transfers(
        payer=drawn(random, popularity, rest),
        payee=random.permutation(ACCOUNTS)[drawn(random, popularity, rest)],
        cents=np.clip(random.lognormal(13.8, 2.2, rest), 100, 5e10).astype(np.int64),
        micros=random.integers(0, span, rest),
        type_code=np.array(TYPES)[drawn(random, np.array(TYPE_SHARES), rest)],
    )

    def both(name: str) -> Integers:
        values: Integers = np.concatenate([getattr(schemed, name)[inside], getattr(others, name)])
        return values

    order = np.argsort(both("micros"), kind="stable")
    together = _Transfers(
        *(both(name)[order] for name in ("payer", "payee", "cents", "micros", "type_code"))
    )
    return _table(together, seed)


def store_transfers(
    folder: Path, seed: int = 1, records: int = RECORDS, per_file: int = INCREMENT
) -> StoredStream:
    """The transfers as Parquet files in stream order."""
    return store_table(
        lambda: transfers(seed, records), folder, records, per_file, f"transfers seed={seed}"
    )


def _schemed(random: np.random.Generator, wanted: int, span: int) -> _Transfers:
    """About `wanted` transfers of all schemes; some lie before the beginning or after the end."""
    schemes = _schemes()
    lead = _LEAD_DAYS * DAY
    of_each = wanted // len(schemes) * (span + lead) // span
    parts = [
        _instances(random, scheme, max(1, of_each // len(scheme.payers)), span)
        for scheme in schemes
    ]
    return _Transfers(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("payer", "payee", "cents", "micros", "type_code")
        )
    )


def _instances(random: np.random.Generator, scheme: _Scheme, count: int, span: int) -> _Transfers:
    steps = len(scheme.payers)
    accounts = random.integers(0, ACCOUNTS, (count, scheme.roles))
    fast = random.random((count, 1)) < 0.5
    scale = np.where(fast, DAY / 8, 4 * DAY)
    gaps = random.exponential(1.0, (count, steps)) * scale
    begin = random.integers(-_LEAD_DAYS * DAY, span, (count, 1))
    # A single code for most schemes: such as the paper's queries ask for.
    code = np.where(
        random.random((count, steps)) < 0.9, TYPES[0], random.choice(TYPES[1:], (count, steps))
    )
    return _Transfers(
        payer=accounts[:, scheme.payers].ravel(),
        payee=accounts[:, scheme.payees].ravel(),
        cents=_amounts(random, scheme, count).astype(np.int64).ravel(),
        micros=(begin + np.cumsum(gaps, axis=1)).astype(np.int64).ravel(),
        type_code=code.ravel(),
    )


def _amounts(random: np.random.Generator, scheme: _Scheme, count: int) -> NDArray[np.float64]:
    """In cents."""
    steps = len(scheme.payers)
    whole = 10 ** random.uniform(6, 9.3, (count, 1))
    if scheme.kind == "structured":
        limit = random.choice(LIMITS, (count, 1))
        below: NDArray[np.float64] = limit * (1 - 0.12 * random.random((count, steps)))
        return below
    if scheme.kind in ("relay", "circle"):
        same = random.random((count, steps)) < 0.7
        factor = np.where(same, 1.0, 0.8 + 0.2 * random.random((count, steps)))
        factor[:, 0] = 1.0
        factor[:, 1] = 0.45 + 0.55 * random.random(count)
        amounts = np.empty((count, steps))
        amounts[:, 0] = whole[:, 0]
        for step in range(1, steps):
            # Whole cents at every step, so that the same amount is the same number.
            amounts[:, step] = np.floor(amounts[:, step - 1] * factor[:, step])
        return np.floor(amounts)
    parts = steps - 1 if scheme.kind == "split" else steps
    share = (1 - 0.2 * random.random((count, steps))) / parts
    if scheme.kind == "split":
        share[:, 0] = 1.0
    return whole * share


def _table(rows: _Transfers, seed: int) -> pa.Table:
    random = np.random.default_rng([seed, 13])
    bank = drawn(random, zipf(BANKS, BANK_SKEW), ACCOUNTS)
    number = 10_000 + _rank_within(bank)
    aba = 11_000_000 + random.choice(300_000_000, BANKS, replace=False)
    abroad = 1 + drawn(random, zipf(len(COUNTRIES) - 1, COUNTRY_SKEW), BANKS)
    country = np.where(random.random(BANKS) < AMERICAN, 0, abroad)
    names = bank_names()
    sender, receiver = bank[rows.payer], bank[rows.payee]
    days = rows.micros // DAY
    base = micros_of(BASE)
    return pa.table(
        {
            "tranid": pa.array(np.arange(len(days), dtype=np.int64)),
            "type_code": pa.array(rows.type_code.astype(np.int32)),
            "tran_date": dates(base // DAY + days),
            "ts": timestamps(base + rows.micros),
            "amount": decimals(rows.cents, 14, 2),
            "sbank_aba": pa.array(aba[sender]),
            "sbank_name": strings(names, sender),
            "sbank_country": strings(COUNTRIES, country[sender]),
            "orig_account": pa.array(number[rows.payer]),
            "rbank_aba": pa.array(aba[receiver]),
            "rbank_name": strings(names, receiver),
            "rbank_country": strings(COUNTRIES, country[receiver]),
            "benef_account": pa.array(number[rows.payee]),
        }
    )


def bank_names() -> list[str]:
    """A name for every bank.

    >>> len(set(bank_names()))
    400
    """
    names = [f"{one} {two} {three}" for three in _THIRD for two in _SECOND for one in _FIRST]
    return names[:BANKS]


def _rank_within(group: Integers) -> Integers:
    """The number of earlier members of the same group."""
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], group[order])
    rank = np.empty(len(group), dtype=np.int64)
    rank[order] = np.arange(len(group)) - starts
    return rank
