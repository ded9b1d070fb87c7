"""A quarantined query comes back, and shows no window that it did not see whole."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.oracle.plain_spark import python_rows
from tests.review.support import COUNTS, SECOND, START, opened, put_rows, rows_of
from tests.support import seeds
from tests.support.harness import session
from tests.support.stored import stored_rows

import weft
from weft.catalog.store import Catalog

Row = tuple[int, str, int]
POISON = 7
FAILING = {
    "its predicate": "SELECT window.start AS s, sum(v) AS n, count(*) AS c FROM s "
    f"WHERE 10 / (v - {POISON}) > -100 GROUP BY window(ts, '10 seconds')",
    "its aggregate": f"SELECT window.start AS s, sum(v) AS n, count(10 / (v - {POISON})) AS c "
    "FROM s GROUP BY window(ts, '10 seconds')",
    "its HAVING, on a node that others read": "SELECT window.start AS s, sum(v) AS n, "
    f"count(*) AS c FROM s GROUP BY window(ts, '10 seconds') HAVING 10 / (max(v) - {POISON}) > -100",
    "its HAVING, on a node of its own": "SELECT window.start AS s, sum(v) AS n, count(*) AS c "
    f"FROM s GROUP BY window(ts, '10 seconds'), k || '!' HAVING 10 / (max(v) - {POISON}) > -100",
}
BEFORE: list[list[Row]] = [[(1, "a", 1), (2, "a", POISON)], [(12, "a", 2), (13, "a", 3)]]
"""The second batch makes the window of the poison due, and belongs to the next one."""
WITHOUT: list[Row] = [(14, "a", 4), (16, "a", 5)]
"""Comes while the query is quarantined."""
AFTER: list[list[Row]] = [
    [(17, "a", 6), (23, "a", 8), (31, "a", 9)],
    [(33, "a", 1), (41, "a", 2), (42, "a", 3)],
    [(52, "a", 4)],
    [(70, "a", 5)],
]


def windows_of(rows: Sequence[Row]) -> dict[int, tuple[int, int]]:
    """Start, sum and count of each window of ten seconds, by brute force."""
    sums: dict[int, tuple[int, int]] = {}
    for time, _, value in rows:
        start = START + time // 10 * 10 * SECOND
        total, count = sums.get(start, (0, 0))
        sums[start] = (total + value, count + 1)
    return sums


def found_windows(w: weft.Weft, name: str) -> list[tuple[int, int, int]]:
    return sorted(stored_rows(w, name))


@pytest.mark.parametrize(
    ("kind", "kernel"),
    [
        *((kind, "driver") for kind in seeds.some(__name__, [*FAILING], 2)),
        *((kind, "lanes") for kind in seeds.some(f"{__name__} lanes", [*FAILING], 1)),
    ],
)
def test_a_shared_query_shows_only_whole_windows_after_it_was_resumed(
    spark: SparkSession, tmp_path: Path, kind: str, kernel: str
) -> None:
    """
    0        10        20        30        40        50
    |----x---|--oo--.--|--.---o--|----oo---|---oo----|--o
         failed     quarantined: "."     resumed: "o"
    """
    w = opened(session(spark), tmp_path, kernel=kernel)
    handle = w.register("q", FAILING[kind])
    w.register(
        "steady",
        "SELECT window.start AS s, sum(v) AS n, count(*) AS c, max(v) AS m FROM s "
        "GROUP BY window(ts, '10 seconds')",
    )
    batches = [*BEFORE, WITHOUT, *AFTER]
    number = 0
    run = w.start()
    try:
        for batch in BEFORE:
            put_rows(tmp_path / "input", number, batch)
            run.processAllAvailable()
            number += 1
        assert handle.status == "quarantined"
        assert "DIVIDE_BY_ZERO" in handle.detail
        put_rows(tmp_path / "input", number, WITHOUT)
        run.processAllAvailable()
        shown_before = found_windows(w, "q")
        versions = w._log("s").plan_versions()
        handle.resume()
        assert handle.status == "active" and handle.detail == ""
        for batch in AFTER:
            number += 1
            put_rows(tmp_path / "input", number, batch)
            run.processAllAvailable()
        assert handle.status == "active"
    finally:
        run.stop()
    assert max(w._log("s").plan_versions()) > max(versions)
    wanted = windows_of([row for batch in batches for row in batch])
    shown = found_windows(w, "q")
    assert [start for start, _, _ in shown] == sorted({start for start, _, _ in shown})
    for start, total, count in shown:
        assert (total, count) == wanted[start], f"window {(start - START) // SECOND}"
    complete_from = handle.complete_from
    late = [start for start, _, _ in shown if (start, *wanted[start]) not in shown_before]
    if complete_from is not None:
        assert all(start >= complete_from for start in late)
    seconds = [(start - START) // SECOND for start in late]
    assert {40, 50} <= set(seconds)
    if "a node that others read" not in kind:
        assert 10 not in seconds
    steady = python_rows(w.results("steady").toArrow())
    assert sorted(row[:3] for row in steady) == sorted(
        (s, *v) for s, v in wanted.items() if s < START + 60 * SECOND
    )


def test_windows_of_rows_begin_again_whole(spark: SparkSession, tmp_path: Path) -> None:
    w = opened(session(spark), tmp_path)
    sql = "SELECT window.start AS s, sum(v) AS n FROM s [RANGE 4 ROWS SLIDE 2 ROWS] "
    handle = w.register("q", sql + f"HAVING 10 / (max(v) - {POISON}) > -100")
    w.register("steady", sql)
    run = w.start()
    values = [1, 2, POISON, 3, 4, 5, 6, 8, 9, 1, 2, 3, 4, 5, 6, 8, 9, 1, 2, 3]
    try:
        for number in range(0, len(values), 5):
            rows = [(number + i, "a", values[number + i]) for i in range(5)]
            put_rows(tmp_path / "input", number, rows)
            run.processAllAvailable()
            if number == 5:
                assert handle.status == "quarantined"
                handle.resume()
        assert handle.status == "active"
    finally:
        run.stop()
    shown = sorted(rows_of(w, "q"))
    steady = sorted(rows_of(w, "steady"))
    assert [row for row in steady if row in shown] == shown
    assert len(shown) == len(set(shown))
    assert steady[-1] in shown
    assert handle.complete_from is not None


def test_filters_and_joins_go_on_with_the_rows_that_come(
    spark: SparkSession, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A join sees no row that came before it was resumed. Errors are told by weft, and by nobody else."""
    w = opened(session(spark), tmp_path)
    w.register("filtered", f"SELECT v, 10 / (v - {POISON}) AS x FROM s WHERE v > 0")
    w.register(
        "joined",
        f"SELECT a.v AS a, b.v AS b, 10 / (b.v - {POISON}) AS x FROM s a JOIN s b ON a.k = b.k "
        "AND b.ts > a.ts AND b.ts <= a.ts + INTERVAL 10 SECONDS",
    )
    w.register("windows", FAILING["its aggregate"])
    w.register("alone", f"SELECT transform(array(v), x -> 10 / (x - {POISON})) AS x FROM s")
    names = ("filtered", "joined", "windows", "alone")
    run = w.start()
    try:
        for number, value in enumerate([1, POISON, 3]):
            put_rows(tmp_path / "input", number, [(number, "a", value)])
            run.processAllAvailable()
        for name in names:
            assert w.query(name).status == "quarantined", name
            assert w.query(name).detail.startswith("[DIVIDE_BY_ZERO] Division by zero"), name
        for name in ("filtered", "joined"):
            w.resume(name)
        for number, value in enumerate([4, 5, 6], 3):
            put_rows(tmp_path / "input", number, [(5 * number - 10, "a", value)])
            run.processAllAvailable()
    finally:
        run.stop()
    assert [row[0] for row in sorted(rows_of(w, "filtered"))] == [1, 4, 5, 6]
    assert sorted(row[:2] for row in rows_of(w, "joined")) == [(4, 5), (4, 6), (5, 6)]
    assert "QueryContextLogger" not in capfd.readouterr().err


def test_another_process_resumes_a_fallback_that_goes_on_where_it_failed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The command changes only the catalog; the process that runs takes the query up."""
    w = opened(session(spark), tmp_path, sink_pause_seconds=0.01)
    handle = w.register("plain", "SELECT k, transform(array(v), x -> x)[0] AS v FROM s")
    w.register("counts", COUNTS)
    put_rows(tmp_path / "input", 0, [(1, "a", 1)])
    run = w.start()
    try:
        run.processAllAvailable()
        put_rows(tmp_path / "input", 1, [(2, "a", 2)])
        run.processAllAvailable()
        assert rows_of(w, "plain") == [("a", 1), ("a", 2)]
        w._registry.quarantine(handle._record.id, "as if it had failed")
        w._supervisor.sync()
        assert run.fallback_ids == set()
        put_rows(tmp_path / "input", 2, [(3, "a", 3)])
        Catalog(f"sqlite:///{tmp_path / 'checkpoint' / 'catalog.db'}").resume("plain")
        w._registry.look()
        w._supervisor.sync()
        assert run.fallback_ids == {handle._record.id}
        run.processAllAvailable()
    finally:
        run.stop()
    assert handle.status == "fallback"
    assert rows_of(w, "plain") == [("a", 1), ("a", 2), ("a", 3)]


def test_only_what_stands_still_is_resumed(spark: SparkSession, tmp_path: Path) -> None:
    w = opened(session(spark), tmp_path)
    handle = w.register("counts", COUNTS)
    with pytest.raises(weft.CatalogError, match=r"NOTHING_TO_RESUME.*'counts' is active"):
        handle.resume()
    with pytest.raises(weft.CatalogError, match="UNKNOWN_QUERY"):
        w.resume("other")


def test_a_rejected_query_is_resumed_when_it_is_right(spark: SparkSession, tmp_path: Path) -> None:
    """Registered by another process over a stream that lacks the column, which then comes."""
    own_session = session(spark)
    w = opened(own_session, tmp_path)
    w._catalog.add_query("wide", COUNTS.replace("k, count(*)", "k, max(w) AS m, count(*)"))
    assert w.query("wide").status == "active"
    w._registry.shared("s")
    assert w.query("wide").status == "rejected"
    with pytest.raises(weft.SqlError, match="UNKNOWN_COLUMN"):
        w.resume("wide")
    assert w.query("wide").status == "rejected"
