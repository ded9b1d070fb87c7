"""The list of result files: what expires, what is merged, and in which order it stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from weft.runtime.checkpoint.storage import Storage
from weft.runtime.sinks import resultfiles
from weft.runtime.sinks.store import ResultStore

DAY = 86_400_000_000


def entry(batch: int, family: str = "f", size: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "root": "",
        "family": family,
        "name": f"{family}{batch}",
        "batch": batch,
        "size": size,
    } | fields


def batches(files: list[dict[str, Any]]) -> list[int]:
    return [file["batch"] for file in files]


def test_only_neighbours_are_merged() -> None:
    """A large file stands between two runs of small ones: rows keep the order of batches.

    small × 9 | large | small × 9        one file | large | one file
    """
    large = resultfiles.SMALL_FILE
    files = [entry(b, size=large if b == 9 else 1) for b in range(19)]
    runs = resultfiles.mergeable(files)
    assert [batches(run) for run in runs] == [list(range(9)), list(range(10, 19))]
    merged = [(run, entry(run[-1]["batch"], name=f"merged{i}")) for i, run in enumerate(runs)]
    left = resultfiles.with_merged(files, merged)
    assert batches(left) == [8, 9, 18]
    assert [file["name"] for file in left] == ["merged0", "f9", "merged1"]


def test_families_are_merged_apart_and_the_list_stays_in_order() -> None:
    files = [entry(b, family) for b in range(10) for family in "fg"]
    runs = resultfiles.mergeable(files)
    assert [(run[0]["family"], len(run)) for run in runs] == [("f", 10), ("g", 10)]
    merged = [(run, entry(9, run[0]["family"], name=run[0]["family"])) for run in runs]
    assert [file["name"] for file in resultfiles.with_merged(files, merged)] == ["f", "g"]


def test_few_files_are_left_alone() -> None:
    files = [entry(b) for b in range(resultfiles.MERGE_AT_LEAST - 1)]
    assert resultfiles.mergeable(files) == []


def test_a_file_expires_with_its_latest_results() -> None:
    files = [entry(0, written=0), entry(1, written=3 * DAY, first_written=0), entry(2)]
    kept, expired = resultfiles.split_expired(files, now=8 * DAY, keep=7 * DAY)
    assert (batches(kept), batches(expired)) == ([1, 2], [0])
    assert resultfiles.split_expired(files, now=80 * DAY, keep=None) == (files, [])


def test_files_that_would_outlive_keep_are_not_merged() -> None:
    """One file a day, merged again with every base: it would never be old enough to go."""
    files = [entry(b, written=b * DAY) for b in range(20)]
    assert resultfiles.mergeable(files, keep=10 * DAY) == []
    assert [len(run) for run in resultfiles.mergeable(files, keep=100 * DAY)] == [11, 9]
    merged = entry(10, written=10 * DAY, first_written=0)
    rest = [entry(b, written=b * DAY) for b in range(11, 20)]
    assert [batches(run) for run in resultfiles.mergeable([merged, *rest], keep=100 * DAY)] == [
        list(range(11, 20))
    ]


@pytest.mark.parametrize("rounds", [1, 3])
def test_merged_rows_are_all_there_once_and_in_order(tmp_path: Path, rounds: int) -> None:
    checkpoint = Storage(tmp_path)
    store = ResultStore()
    store.bind(checkpoint, "owner")
    files: list[dict[str, Any]] = []
    for batch in range(10 * rounds):
        rows = {"query": [f"q@{q}" for q in (1, 2)], "c0": [batch, batch + 100]}
        name = store.file_name("s", f"{batch:03d}", "try", "f")
        files.append(store.write_file(name, "f", batch, pa.table(rows)))
        if len(files) >= 10:
            files, gone = resultfiles.tidied(checkpoint, files, f"merged{batch}", None)
            assert len(gone) == 10 if batch == 9 else len(gone) > 1
    assert len(files) <= 9
    assert sum(file["rows"] for file in files) == 20 * rounds
    assert batches(files) == sorted(batches(files))
    table = pa.concat_tables([store.storage.read_table(file["name"]) for file in files])
    for query, plus in (("q@1", 0), ("q@2", 100)):
        rows = table.filter(pa.compute.equal(table.column("query"), query))
        assert rows.column("c0").to_pylist() == [b + plus for b in range(10 * rounds)]
        assert rows.column("batch").to_pylist() == list(range(10 * rounds))
    assert all(
        file["first_written"] <= file["written"] for file in files if "first_written" in file
    )
