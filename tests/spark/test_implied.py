"""Sketches of keys are never computed from rows; generated code is the same in every step."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from tests.oracle.plain_spark import COMPILED
from tests.spark.test_engine import Batch, rows_of, started
from tests.support import seeds

from weft.algebra.aggregate import Aggregate, lift
from weft.algebra.plan import Fragments, Node
from weft.algebra.scalar import Expression
from weft.kernel.columns.sketches.sketch_column import of_single_values
from weft.kernel.fragments.state import partial_column

TEXT = Expression("`k`", "string", ("k",))
(SKETCH,) = lift(Aggregate("approx_count_distinct", (TEXT,), "bigint"), "unix_micros(ts)", None)
WINDOW = "window(ts, '10 seconds')"
QUERIES = {
    "of_k": f"SELECT k, approx_count_distinct(k) AS n FROM s GROUP BY k, {WINDOW}",
    "of_v": f"SELECT k, approx_count_distinct(v) AS n FROM s GROUP BY k, {WINDOW}",
    "both": f"SELECT k, v, approx_count_distinct(v, 0.01) AS n FROM s GROUP BY k, v, {WINDOW}",
    "all": f"SELECT approx_count_distinct(k) AS k, approx_count_distinct(v) AS v FROM s "
    f"GROUP BY {WINDOW}",
    "some": f"SELECT k, approx_count_distinct(k) FILTER (WHERE v > 1) AS n FROM s "
    f"GROUP BY k, {WINDOW}",
    "times": f"SELECT ts, approx_count_distinct(ts) AS n FROM s GROUP BY ts, {WINDOW}",
}
BATCHES: list[Batch] = [
    [(t, [None, "", "a", "ä"][t % 4], t % 3) for t in range(10)],
    [(t, "a", t % 5) for t in range(10, 20)],
    [(30, "b", 1)],
    [(60, "b", 1)],
]


ALL_PASSES = ("predicates", "groupby", "windows")


@pytest.mark.parametrize(
    ("kernel", "passes"),
    [
        ("driver", ALL_PASSES),
        *seeds.some(__name__, [("lanes", ALL_PASSES), ("driver", ()), ("lanes", ())], 1),
    ],
)
def test_distinct_values_of_keys(
    spark: SparkSession, tmp_path: Path, kernel: str, passes: tuple[str, ...]
) -> None:
    settings = {"kernel": kernel, "lanes": 2, "passes": passes}
    w, _ = started(spark, tmp_path, BATCHES, QUERIES, **settings)
    first: list[tuple[object, ...]] = [("", 1), ("a", 1), ("a", 1), ("b", 1), ("ä", 1), (None, 0)]
    assert rows_of(w, "of_k") == sorted(first, key=str)
    assert rows_of(w, "of_v") == sorted(
        [("", 3), ("a", 2), ("a", 5), ("b", 1), ("ä", 2), (None, 3)], key=str
    )
    assert {n for _, _, n in rows_of(w, "both")} == {1}
    assert rows_of(w, "all") == [(1, 1), (1, 5), (3, 3)]
    assert dict(rows_of(w, "some")) == {"": 1, "a": 1, "b": 0, "ä": 0, None: 0}
    assert [n for _, n in rows_of(w, "times")] == [1] * 21


def test_state_files_have_no_sketches_of_keys(spark: SparkSession, tmp_path: Path) -> None:
    started(spark, tmp_path, BATCHES, {"of_k": QUERIES["of_k"]})
    files = list((tmp_path / "checkpoint").rglob("state/**/*.parquet"))
    assert files
    for file in files:
        types = pq.ParquetFile(file).schema_arrow.types
        assert pa.binary() not in types


def test_a_sketch_of_one_value_is_that_of_spark(spark: SparkSession) -> None:
    values = spark.sql("SELECT * FROM VALUES (1L), (-5L), (9999999999L), (0L) AS t(x)")
    found = values.groupBy("x").agg({"x": "hll_sketch_agg"}).toArrow()
    sketches = of_single_values(found.column(0).combine_chunks(), 12)
    assert sketches.to_arrow().to_pylist() == found.column(1).to_pylist()
    assert sketches.estimates().tolist() == [1] * 4


def test_a_sketch_of_one_text_is_that_of_spark(spark: SparkSession) -> None:
    """Of the text as `hll_sketch_agg` gets it, which ignores empty ones."""
    node = Node("n", (TEXT,), 1, (), True, (SKETCH,), Fragments(pane=1))
    texts = spark.sql("SELECT * FROM VALUES (''), ('a'), ('ä'), ('_') AS t(k)")
    found = texts.groupBy("k").agg(F.expr(SKETCH.lift)).toArrow()
    (sketches,) = partial_column(SKETCH, node, {"k0": found.column(0).combine_chunks()})
    assert sketches.to_arrow().to_pylist() == found.column(1).to_pylist()


def test_other_watermarks_need_no_other_code(spark: SparkSession, tmp_path: Path) -> None:
    """A watermark in the generated code would make it new in every step. Other workers' tests share Spark
    and may compile at the same time, but not every time."""
    assert spark._jvm is not None
    metrics = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics
    queries = {name: QUERIES[name] for name in ("of_k", "of_v")}

    def compiled_for(shift: int) -> int:
        """How much Spark compiles for the same stream at other times."""
        before = metrics.METRIC_COMPILATION_TIME().getCount()
        batches: list[Batch] = [
            [(t + shift, k, v) for t, k, v in batch if t is not None] for batch in BATCHES
        ]
        compiled = {"spark_settings": COMPILED, "statistics_every": 0}
        started(spark, tmp_path / str(shift), batches, queries, **compiled)
        return int(metrics.METRIC_COMPILATION_TIME().getCount() - before)

    assert compiled_for(0) > 0
    assert any(compiled_for(shift) == 0 for shift in range(7, 42, 7))
