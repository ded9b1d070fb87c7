"""Fed: seeded transfers in time order, queries that answer something, rules that pass few rows."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from weft.bench.peers.in_full import InFull, sampled
from weft.workloads.categories import respelled
from weft.workloads.fed.queries import categories, queries, varied
from weft.workloads.fed.rules import filter_rules
from weft.workloads.fed.stream import TIME, store_transfers, transfers

HISTORY, INCREMENT = 76_000, 4_000


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return transfers(records=HISTORY + INCREMENT)


@pytest.fixture(scope="module")
def duck(table: pa.Table) -> InFull:
    return InFull("transfers", table)


def test_the_same_seed_gives_the_same_transfers_and_another_others() -> None:
    one, same, other = transfers(1, 500), transfers(1, 500), transfers(2, 500)
    assert one.equals(same)
    assert not one.equals(other)


def test_transfers_are_in_the_order_of_time(table: pa.Table) -> None:
    assert table.num_rows == HISTORY + INCREMENT
    micros = table[TIME].cast(pa.int64()).to_numpy()
    assert (np.diff(micros) >= 0).all()
    days = table["tran_date"].cast(pa.int32()).to_numpy()
    assert (days == micros // 86_400_000_000).all()
    assert table["tranid"].to_numpy().tolist() == list(range(table.num_rows))
    assert pc.min(table["amount"]).as_py() > 0


def test_an_account_number_belongs_to_several_banks_and_an_account_to_one(
    table: pa.Table,
) -> None:
    accounts = table.group_by(["sbank_aba", "orig_account"]).aggregate([([], "count_all")])
    numbers = table.group_by(["orig_account"]).aggregate([([], "count_all")])
    assert numbers.num_rows < accounts.num_rows / 2
    banks = table.group_by(["sbank_aba", "sbank_name", "sbank_country"]).aggregate([])
    assert banks.num_rows == len(pc.unique(table["sbank_aba"]))


def test_there_are_768_queries_in_32_categories_interleaved() -> None:
    made = queries()
    assert len({query.name for query in made}) == len({query.sql for query in made}) == 768
    assert set(Counter(query.category for query in made).values()) == {24}
    assert len({query.category for query in made[:32]}) == 32
    assert Counter(query.ways for query in made) == {2: 192, 3: 192, 4: 192, 5: 192}
    assert queries(100) == made[:100]


def test_the_queries_of_the_paper_are_among_them() -> None:
    texts = {query.sql for query in queries() if query.category == "pass_on_3"}
    for days in (20, 10):
        assert any(
            "r1.amount > 1000000" in text
            and "r2.amount > 0.5 * r1.amount" in text
            and "r2.amount = r3.amount" in text
            and f"r3.ts <= r2.ts + INTERVAL {days} DAYS" in text
            for text in texts
        )


def test_a_query_with_fewer_joins_is_the_beginning_of_one_with_more() -> None:
    by_name = {category.name: category for category in categories()}
    for kind in ("pass_on", "structured", "abroad", "shrinking", "rapid"):
        shorter = set(by_name[f"{kind}_3"].conditions(5000, 10))
        assert shorter < set(by_name[f"{kind}_4"].conditions(5000, 10))


def test_every_category_answers_something_and_none_explodes(duck: InFull) -> None:
    lines = []
    for category in categories():
        counts = [
            duck.new_matches(query, "tranid", HISTORY) for query in sampled(category.queries(1), 2)
        ]
        new, total = (sum(pair[place] for pair in counts) / len(counts) for place in (0, 1))
        lines.append(f"{category.name:14} {new:8.1f} new matches of {total:8.1f} per query")
        assert total > 0, category.name
        assert new < 300, category.name
    print("\n" + "\n".join(lines))


def test_another_spelling_gives_the_same_rows(duck: InFull) -> None:
    for query in queries(32):
        other = respelled(query)
        assert other.sql != query.sql
        assert duck.rows(query).num_rows == duck.rows(other).num_rows


def test_varied_queries_are_all_different_and_interleaved() -> None:
    made = varied(3000)
    assert len({query.name for query in made}) == len({query.sql for query in made}) == 3000
    assert len({query.category for query in made[:32]}) == 32


def test_rules_together_pass_about_one_row_in_a_hundred(duck: InFull, table: pa.Table) -> None:
    rules = filter_rules(1000)
    assert len({rule.sql for rule in rules}) == 1000
    passed = sum(duck.rows(rule).num_rows for rule in rules)
    assert 0.005 < passed / table.num_rows < 0.02


def test_stored_transfers_are_files_in_stream_order(tmp_path: Path) -> None:
    stored = store_transfers(tmp_path / "fed", records=4000, per_file=1000)
    assert (stored.files, stored.rows_per_file) == (4, 1000)
    assert "`amount` decimal(14,2)" in stored.schema and "`ts` timestamp" in stored.schema
    read = pa.concat_tables([pq.read_table(path) for path in stored.paths()])
    assert read.equals(transfers(records=4000))
    changed = [path.stat().st_mtime for path in stored.paths()]
    assert changed == sorted(changed) and len(set(changed)) == 4
    before = stored.paths()[0].stat().st_ino
    again = store_transfers(tmp_path / "fed", records=4000, per_file=1000)
    assert again == stored and stored.paths()[0].stat().st_ino == before
