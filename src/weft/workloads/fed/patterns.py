"""A few hundred fraud patterns on a small stream of transfers: the second act of `weft demo`.

The patterns are queries of the Fed workload, under names that say what they look for, with the columns
that a person wants to see: who paid how much to whom in the first and the last transfer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from weft.workloads.categories import JoinSql
from weft.workloads.fed.queries import queries
from weft.workloads.fed.stream import store_transfers
from weft.workloads.stored import StoredStream

COUNT = 256
RECORDS = 60_000
FILES = 6

_MEANINGS = {
    "pass_on": "money is passed on",
    "circle": "money comes back",
    "structured": "amounts below a limit",
    "gather": "many pay to one",
    "split": "money goes out in parts",
    "abroad": "money leaves for a haven",
    "shrinking": "a little is kept each time",
    "rapid": "money moves within hours",
}


@dataclass(frozen=True)
class Act:
    """What the demo runs: transfers as ordered files, and patterns."""

    stream: StoredStream
    patterns: Sequence[JoinSql]


def act(folder: Path, records: int = RECORDS, count: int = COUNT, seed: int = 1) -> Act:
    """The stream and the patterns of the demo."""
    stored = store_transfers(folder, seed, records // FILES * FILES, records // FILES)
    return Act(stored, patterns(count, seed))


def patterns(count: int = COUNT, seed: int = 1) -> list[JoinSql]:
    """The first queries of the workload, with more columns.

    >>> len(patterns()), patterns()[0].outputs[:2]
    (256, ('r1.tranid AS first_transfer', 'r1.amount AS first_amount'))
    """
    return [_shown(query) for query in queries(count, seed)]


def meaning(query: JoinSql) -> str:
    """What a pattern looks for.

    >>> meaning(patterns()[0])
    'money is passed on, 2 transfers'
    """
    kind = query.category.rsplit("_", 1)[0]
    return f"{_MEANINGS[kind]}, {query.ways} transfers"


def _shown(query: JoinSql) -> JoinSql:
    last = f"r{query.ways}"
    return replace(
        query,
        outputs=(
            "r1.tranid AS first_transfer",
            "r1.amount AS first_amount",
            "r1.sbank_name AS from_bank",
            f"{last}.tranid AS last_transfer",
            f"{last}.amount AS last_amount",
            f"{last}.rbank_name AS to_bank",
            f"{last}.tran_date AS day",
        ),
    )
