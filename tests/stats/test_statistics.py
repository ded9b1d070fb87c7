"""What a stream's statistics answer, keep and forget."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.stats.laws import Law

from weft.catalog import Catalog
from weft.stats import Estimate, JointSample, Selectivity, Sketch, StreamStatistics

KEYS = ["a", "b", "c", "unsampled"]


def hashes(values: object) -> np.ndarray:
    return np.asarray(values, np.uint32)


@st.composite
def streams(draw: st.DrawFn) -> StreamStatistics:
    """Statistics of a few rows of three keys, some with sketches that need not fit."""
    count = draw(st.integers(1, 40))
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    spread = draw(st.tuples(*[st.integers(1, 60)] * 3))
    columns = {key: hashes(chance.integers(0, n, count)) for key, n in zip("abc", spread)}
    sketches = draw(
        st.dictionaries(
            st.frozensets(st.sampled_from("abc"), min_size=1),
            st.builds(Sketch, st.floats(1, 1e6), st.floats(1, 1e6)),
            max_size=2,
        )
    )
    sample = JointSample().then(columns)
    if draw(st.booleans()):  # then some rows without c
        sample = sample.then({"a": columns["a"], "b": columns["b"]}, most=count)
    return StreamStatistics(sample=sample, sketches=sketches)


@given(streams(), st.lists(st.floats(1, 1e5), min_size=2, max_size=4))
@settings(max_examples=40)
def test_groups_grow_with_rows_and_keys_and_stay_below_products(
    statistics: StreamStatistics, lengths: list[float]
) -> None:
    sets = [frozenset(s) for n in range(len(KEYS) + 1) for s in combinations(KEYS, n)]
    before = dict.fromkeys(sets, 0.0)
    for rows in sorted(lengths):
        now = {keys: statistics.groups(keys, rows) for keys in sets}
        for one in sets:
            assert 1 <= now[one] <= rows
            assert now[one] >= before[one] * (1 - 1e-9), "more rows"
            for other in sets:
                both = now[one | other] * (1 - 1e-9)
                assert now[one] * (1 - 1e-9) <= now[one | other], "more keys"
                assert both <= now[one] * now[other], "parts"
        before = now


def test_sets_of_many_keys_are_bounded_too(chance: random.Random) -> None:
    drawn = np.random.default_rng(chance.getrandbits(32))
    many = {f"k{i:02d}": hashes(drawn.integers(0, 2, 500)) for i in range(12)}
    statistics = StreamStatistics(sample=JointSample().then(many))
    for rows in (50.0, 500.0, 5e5):
        groups = statistics.groups(many, rows)
        assert statistics.groups(sorted(many)[:3], rows) <= groups <= min(rows, 2.0**12)


def test_the_joint_law_counts_not_the_product() -> None:
    """b follows a: the pair has as many groups as a has. c is independent of it."""
    stream = Law(0.5, 3000).draw(200_000, seed=3)
    a, c = stream.astype(np.uint32), Law(0, 30).draw(200_000, seed=4).astype(np.uint32)
    columns = {"a": a, "b": a // np.uint32(7), "c": c}
    sample = JointSample().then({key: column[90_000:110_000] for key, column in columns.items()})
    statistics = StreamStatistics(sample=sample)
    for rows in (2000, 20_000, 100_000):
        for keys in ["a", "b", "c", "ab", "ac", "abc"]:
            parts = np.stack([columns[key][:rows] for key in keys])
            exact = np.unique(parts, axis=1).shape[1]
            allowed = 0.05 if rows <= 20_000 else 0.12
            assert statistics.groups(keys, rows) == pytest.approx(exact, rel=allowed), (keys, rows)


def test_keys_that_were_never_sampled_together_count_as_independent() -> None:
    apart = JointSample().then({"a": hashes(range(50))}).then({"b": hashes([1, 2] * 50)})
    statistics = StreamStatistics(sample=apart)
    assert statistics.groups("ab", 40) == 40
    assert statistics.groups("ab", 1000) == pytest.approx(
        min(2 * statistics.groups("a", 1000), 1000), rel=1e-6
    )
    assert statistics.estimate("ab", 40).source == "assumed"


def test_without_data_everything_is_assumed_and_planning_goes_on() -> None:
    nothing = StreamStatistics.unknown(rate=50.0)
    assert not nothing.known
    assert (nothing.rate, nothing.alpha("a")) == (Estimate(50.0, "assumed"), 0.0)
    assert nothing.selectivity("p") == Estimate(0.5, "assumed")
    assert nothing.estimate("ab", 1e6) == Estimate(10_000.0, "assumed")
    assert nothing.bounds("ab", 500) == (1.0, 500)
    assert nothing.groups((), 500) == 1.0
    assert nothing.counted({"rows": 7, "rate": 3.5}).rate == Estimate(3.5, "measured", 7)


def test_estimates_say_where_they_come_from() -> None:
    sample = JointSample().then({"a": hashes([1, 1, 2, 3]), "b": hashes([1, 2, 1, 2])})
    statistics = StreamStatistics(sample=sample, sketches={frozenset("a"): Sketch(100.0, 9.0)})
    assert statistics.estimate("a", 4) == Estimate(3.0, "sampled", 4)
    assert statistics.estimate("a", 100) == Estimate(pytest.approx(9.0, rel=1e-4), "sketched", 100)
    assert statistics.estimate("ab", 100).source == "sampled"
    assert statistics.estimate(["a", "z"], 100).source == "assumed"
    low, high = statistics.bounds("a", 8)
    assert (low, high) == (3.0, 6.0)


BATCHES = st.lists(
    st.tuples(st.frozensets(st.sampled_from("xyz"), min_size=1), st.integers(1, 6)), max_size=6
)


@given(BATCHES, st.integers(1, 12), st.integers(0, 99), st.frozensets(st.sampled_from("xyz")))
@settings(max_examples=80)
def test_the_newest_rows_that_have_all_keys_are_counted(
    batches: list[tuple[frozenset[str], int]], most: int, seed: int, keys: frozenset[str]
) -> None:
    """Against a plain list of rows; a key that was away begins anew."""
    chance = np.random.default_rng(seed)
    sample, rows = JointSample(), list[dict[str, int]]()
    for names, count in batches:
        new = {name: hashes(chance.integers(0, 3, count)) for name in names}
        away = {name for name in "xyz" if rows and name not in rows[-1]}
        for row in rows:
            for name in away & names:
                row.pop(name, None)
        rows += [{name: int(new[name][i]) for name in names} for i in range(count)]
        rows = rows[-most:]
        sample = sample.then(new, most)
    assert sample.rows == len(rows)
    having = [row for row in rows if keys <= row.keys()]
    assert sample.seen(keys) == len(having)
    counted = Counter(Counter(tuple(row[name] for name in sorted(keys)) for row in having).values())
    sizes = Counter(Counter(sample.groups(keys).tolist()).values())
    assert sizes == counted


def test_selectivities_follow_the_stream() -> None:
    selectivity = Selectivity(0.0, 0.0)
    for _ in range(20):
        selectivity = selectivity.then(900, 1000)
    assert selectivity.share == pytest.approx(0.9)
    for _ in range(20):
        selectivity = selectivity.then(100, 1000)
    assert selectivity.share == pytest.approx(0.1, abs=0.001)
    assert selectivity.rows < 1000 / (1 - 0.7) + 1


def some() -> StreamStatistics:
    return StreamStatistics(
        rate=Estimate(10.0, "measured", 500),
        rows=500,
        sample=JointSample().then({"a": hashes([5, 2**32 - 1])}).then({"b": hashes([7])}),
        sketches={frozenset("ab"): Sketch(1000.0, 30.0)},
        selectivities={"p": Selectivity(3.0, 9.0)},
    )


def test_a_catalog_keeps_them_also_one_made_before_there_were_any(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'catalog.db'}"
    old = Catalog(url)
    old.add_query("hot", "SELECT 1")
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        for later in ("statistics", "weft_catalog"):  # a catalog of version 1 has neither
            connection.execute(sa.text(f"DROP TABLE {later}"))
        for later in ("emit", "backfill"):
            connection.execute(sa.text(f"ALTER TABLE queries DROP COLUMN {later}"))
    old.close()

    catalog = Catalog(url)
    assert [record.name for record in catalog.live()] == ["hot"]
    assert not catalog.statistics("bids").known
    catalog.put_statistics("bids", StreamStatistics.unknown())
    catalog.put_statistics("bids", some())
    again = Catalog(url).statistics("bids")
    assert again.to_json() == some().to_json() == json.loads(json.dumps(some().to_json()))
    assert again.estimate("a", 2) == Estimate(2.0, "sampled", 2)
    assert not catalog.statistics("clicks").known

    for body in ('{"format": 99}', "[]", "not json"):
        with engine.begin() as connection:
            connection.execute(sa.text("UPDATE statistics SET body = :body"), {"body": body})
        assert not catalog.statistics("bids").known, "advisory: another format counts as none"
    engine.dispose()
