"""Two hundred and more different windowed queries over the bid stream, as a company has them.

Four families: totals over the whole stream, per channel (the four large ones), and the hot
auctions and bidders. Windows, offsets, predicates, aggregates and HAVING differ; auctions and
bidders keep only groups with many bids, so that results stay a small part of the input.
"""

from __future__ import annotations

import random

from weft.workloads.bids import HOT_CHANNELS

COUNT = 240
STREAM = "bids"
TIME = "dateTime"

_AGGREGATES = (
    "COUNT(*) AS bids",
    "COUNT(*) AS bids, AVG(price) AS mean_price",
    "COUNT(*) AS bids, SUM(price) AS turnover",
    "COUNT(*) AS bids, MIN(price) AS lowest, MAX(price) AS highest",
    "COUNT(*) AS bids, COUNT(*) FILTER (WHERE price >= 1000000) AS large_bids",
    "COUNT(*) AS bids, MAX(price) - MIN(price) AS spread",
)
_PREDICATES = ("", "price >= 10000", "price < 1000000", "price BETWEEN 1000 AND 100000")
_LARGE_CHANNELS = "channel IN (" + ", ".join(f"'{name}'" for name in HOT_CHANNELS) + ")"
_KEYS = ("", "channel", "auction", "bidder")
_HAVING = {"": "", "channel": "", "auction": "COUNT(*) > 200", "bidder": "COUNT(*) > 400"}


def queries(count: int = COUNT, seed: int = 1) -> list[tuple[str, str]]:
    """``count`` different queries as (name, SQL) pairs.

    >>> made = queries()
    >>> len(made), len({sql for _, sql in made})
    (240, 240)
    """
    choose = random.Random(f"demo {seed}")
    names: dict[str, str] = {}
    while len(names) < count:
        key = _KEYS[len(names) % len(_KEYS)]
        sql = _query(key, choose)
        if sql not in names:
            names[sql] = f"{key or 'all'}_{len(names):03d}"
    return [(name, sql) for sql, name in names.items()]


def _query(key: str, choose: random.Random) -> str:
    slide = choose.choice((5, 10, 12, 15, 20, 30, 45, 60))
    length = choose.choice((slide, 2 * slide, 3 * slide, 4 * slide, slide + 7, 3 * slide + 5))
    start = choose.choice((0, 0, 0, choose.randint(1, slide - 1)))
    predicates = [choose.choice(_PREDICATES)]
    having = _HAVING[key]
    if key == "channel":
        predicates.append(_LARGE_CHANNELS)
    if key in ("", "channel") and choose.random() < 0.25:
        having = f"COUNT(*) > {choose.choice((100, 1000, 5000))}"
    where = " AND ".join(p for p in predicates if p)
    columns = f"{key}, " if key else ""
    window = f"window({TIME}, '{length} seconds', '{slide} seconds', '{start} seconds')"
    parts = [
        f"SELECT window.start AS start, {columns}{choose.choice(_AGGREGATES)}",
        f"FROM {STREAM}",
        f"WHERE {where}" if where else "",
        f"GROUP BY {window}" + (f", {key}" if key else ""),
        f"HAVING {having}" if having else "",
    ]
    return "\n".join(part for part in parts if part)
