"""Med: seeded stays in the order of discharge, and queries that answer something."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

from weft.bench.peers.in_full import InFull, sampled
from weft.workloads.med.queries import categories, queries
from weft.workloads.med.stream import TIME, stays

HISTORY, INCREMENT = 76_000, 4_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return stays(records=HISTORY + INCREMENT)


@pytest.fixture(scope="module")
def duck(table: pa.Table) -> InFull:
    return InFull("stays", table)


def test_the_same_seed_gives_the_same_stays_and_another_others() -> None:
    one, same, other = stays(1, 500), stays(1, 500), stays(2, 500)
    assert one.equals(same)
    assert not one.equals(other)


def test_stays_are_in_the_order_of_discharge(table: pa.Table) -> None:
    micros = table[TIME].cast(pa.int64()).to_numpy()
    assert (np.diff(micros) >= 0).all()
    admitted = table["admit_date"].cast(pa.int32()).to_numpy()
    discharged = table["discharge_date"].cast(pa.int32()).to_numpy()
    assert (discharged == micros // 86_400_000_000).all()
    assert (admitted < discharged).all()


def test_there_are_565_queries_in_8_categories_three_of_them_large() -> None:
    made = queries()
    assert len({query.name for query in made}) == len({query.sql for query in made}) == 565
    sizes = Counter(query.category for query in made)
    assert sorted(sizes.values()) == [30, 30, 30, 30, 31, 138, 138, 138]
    assert len({query.category for query in made[:8]}) == 8


def test_every_category_answers_something_and_none_explodes(duck: InFull) -> None:
    lines = []
    for category in categories():
        counts = [
            duck.new_matches(query, "record", HISTORY) for query in sampled(category.queries(1), 4)
        ]
        new, total = (sum(pair[place] for pair in counts) / len(counts) for place in (0, 1))
        lines.append(f"{category.name:14} {new:8.1f} new matches of {total:8.1f} per query")
        assert total > 0, category.name
        assert new < 300, category.name
    print("\n" + "\n".join(lines))
