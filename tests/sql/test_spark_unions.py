"""Unions against Spark: the types of their columns, and the rows of their branches' SQL."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from pyspark.errors import AnalysisException
from tests.sql.support import COLUMNS, STREAMS
from tests.sql.test_spark import ROWS

from weft.algebra.network.sets import SetQuery
from weft.algebra.query import quote
from weft.algebra.scalar import quoted_sql
from weft.runtime.queries.analyzer import SparkAnalyzer
from weft.sql import AnalysisProblem, bind
from weft.sql.typing.analyzer import remembering
from weft.sql.typing.widening import common_column_type

pytestmark = pytest.mark.spark

TYPES = [
    *("tinyint", "int", "bigint", "float", "double", "string", "date", "timestamp", "boolean"),
    *("decimal(10,2)", "decimal(38,0)", "void"),
]


@pytest.fixture(scope="module")
def session(spark: Any) -> Any:
    own = spark.newSession()
    own.conf.set("spark.sql.shuffle.partitions", "1")
    own.conf.set("spark.sql.session.timeZone", "UTC")
    ddl = ", ".join(f"{name} {type_}" for name, type_ in COLUMNS.items())
    own.createDataFrame(ROWS, ddl).coalesce(1).createOrReplaceTempView("bids")
    return own


def _null(type_: str) -> str:
    return "NULL" if type_ == "void" else f"CAST(NULL AS {type_})"


@pytest.mark.parametrize("ansi", [True, False])
def test_two_columns_have_the_common_type_that_spark_gives_them(session: Any, ansi: bool) -> None:
    session.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    asked = remembering(SparkAnalyzer(session), ansi)
    pairs = [(left, right) for left in TYPES for right in TYPES]
    ours = [common_column_type(asked, left, right) for left, right in pairs]
    common = [pair for pair, type_ in zip(pairs, ours) if not isinstance(type_, AnalysisProblem)]
    sides = [
        ", ".join(f"{_null(pair[side])} AS c{n}" for n, pair in enumerate(common))
        for side in (0, 1)
    ]
    whole = session.sql(f"SELECT {sides[0]} UNION ALL SELECT {sides[1]}").schema
    theirs = [field.dataType.simpleString() for field in whole]
    assert [type_ for type_ in ours if not isinstance(type_, AnalysisProblem)] == theirs
    refused = [pair for pair in pairs if pair not in common]
    assert len(common) > 70 and len(refused) > 20
    for left, right in refused[:: 1 + len(refused) // 6]:
        with pytest.raises(AnalysisException):
            session.sql(f"SELECT {_null(left)} AS c UNION ALL SELECT {_null(right)}")
    session.conf.unset("spark.sql.ansi.enabled")


UNIONS = [
    "SELECT price, dec, tiny FROM bids UNION ALL SELECT dec, tiny, d FROM bids",
    "SELECT day AS x FROM bids UNION ALL SELECT ts FROM bids UNION ALL SELECT day FROM bids",
    "SELECT price, 1.5 FROM bids UNION SELECT NULL, f FROM bids",
    "SELECT channel, count FROM (SELECT channel, price AS count FROM bids UNION ALL "
    "SELECT upper(channel), auction + 1 FROM bids WHERE ok) WHERE count > 2",
    "(SELECT tiny AS n FROM bids UNION SELECT price FROM bids) UNION ALL SELECT 3 FROM bids",
    "WITH u AS (SELECT auction AS k, d AS v FROM bids UNION ALL SELECT price, dec FROM bids) "
    "SELECT a.v, b.v AS w FROM u a JOIN u b ON a.k = b.k WHERE a.v < b.v",
    "SELECT v + 1 AS w FROM (SELECT f AS v FROM bids UNION ALL SELECT price FROM bids) u",
]


def test_names_types_and_values_are_those_of_spark(session: Any) -> None:
    for text in UNIONS:
        query = bind("q", text, STREAMS, SparkAnalyzer(session), query_id="q@1", time_zone="UTC")
        assert isinstance(query, SetQuery), (text, query)
        theirs = session.sql(text)
        wanted = [(field.name, field.dataType.simpleString()) for field in theirs.schema]
        for branch in query.branches:
            assert [(entry.name, entry.type) for entry in branch.columns] == wanted, text
        assert _rows(session, query) == Counter(map(repr, map(tuple, theirs.collect()))), text


def _rows(session: Any, query: SetQuery) -> Counter[str]:
    """The rows of all branches, and of each set of them once."""
    rows: Counter[str] = Counter()
    for branch, within in zip(query.branches, query.distinct_in, strict=True):
        columns = ", ".join(
            f"r{slot}.{quote(name)} AS {quote(f'{slot}.{name}')}"
            for slot in range(len(branch.inputs))
            for name in COLUMNS
        )
        inputs = ", ".join(f"bids r{slot}" for slot in range(len(branch.inputs)))
        values = ", ".join(
            f"{quoted_sql(column.value)} AS c{n}" for n, column in enumerate(branch.columns)
        )
        inner = f"SELECT {columns} FROM {inputs}"
        sql = f"SELECT {values} FROM ({inner}) WHERE {branch.predicates.sql}"
        new = Counter(repr(tuple(row)) for row in session.sql(sql).collect())
        if within is not None:
            once = Counter(row.replace("-0.0", "0.0") for row in new)
            rows |= Counter(dict.fromkeys(once, 1))
        else:
            rows += new
    return rows
