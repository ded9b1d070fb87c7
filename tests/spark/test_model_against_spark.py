"""The brute-force model gives what plain Spark gives on the same micro-batches.

What Spark gives is recorded, and so are the random cases (`tests.oracle.recorded`); a few are run
again each time, and a few are drawn anew. Others pin down, one by one, the rules that the model
follows (DESIGN §4.1).
"""

from __future__ import annotations

import functools
import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from pyspark.sql import SparkSession
from tests.oracle import compare, model, plain_spark, recorded
from tests.oracle.expressions import (
    Aggregate,
    Arithmetic,
    Column,
    Comparison,
    Expression,
    Literal,
    Logical,
    Style,
    WindowColumn,
)
from tests.oracle.generate import Case, Features, cases, styles
from tests.oracle.sparktypes import BIGINT, DOUBLE, INT, TIMESTAMP, Type, decimal
from tests.oracle.spec import Item, Query, Window

RUNS = 52
RAISING_RUNS = 6
RUN_AGAIN = 3
FRESH_RUNS = 3
SECOND = 1_000_000

#: What plain Spark streaming takes, and answers whatever the order of rows.
PLAIN = Features(extensions=False, order_dependent=False)

Emitted = list[tuple[int, tuple[Any, ...]]]


def drawn_cases(number: int) -> list[tuple[Case, Style]]:
    """A few cases from one seed; hypothesis varies those it has drawn, so later ones resemble."""
    drawn: list[tuple[Case, Style]] = []

    @seed(number)
    @settings(
        max_examples=8,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(PLAIN), styles())
    def draw(case: Case, style: Style) -> None:
        drawn.append((case, style))

    draw()
    return drawn


def draw_cases() -> list[tuple[Case, Style]]:
    """One from each seed: some raise in ANSI mode, all others emit something."""
    raising: list[tuple[Case, Style]] = []
    emitting: list[tuple[Case, Style]] = []
    for number in itertools.count():
        drawn = drawn_cases(number)
        strict = [(replace(case, ansi=True), style) for case, style in drawn]
        raising += [pair for pair in strict if expected(pair[0]) is None][-1:]
        emitting += [pair for pair in drawn if expected(pair[0])][-1:]
        if len(raising) >= RAISING_RUNS and len(emitting) >= RUNS - RAISING_RUNS:
            break
    return [*raising[:RAISING_RUNS], *emitting[: RUNS - RAISING_RUNS]]


@functools.cache
def random_cases() -> tuple[tuple[Case, Style], ...]:
    """The recorded cases, which are drawn if they are to be recorded."""
    if recorded.recording():
        recorded.keep_cases(draw_cases())
    return tuple(recorded.cases())


def expected(case: Case) -> Emitted | None:
    """What the model emits, None if it raises, and nothing where Spark has no one answer."""
    notes: set[str] = set()
    try:
        rows = model.run(
            case.query, case.schema, case.batches, case.delay, ansi=case.ansi, notes=notes
        )
    except model.ModelError as error:
        return None if error.certain else []
    return [] if notes else rows


class Plain(Protocol):
    """Runs a query on plain Spark, or tells what it gave before."""

    def __call__(
        self, text: str, schema: Any, batches: Any, delay: int, **options: Any
    ) -> plain_spark.Output: ...


@pytest.fixture
def plain(request: pytest.FixtureRequest, tmp_path: Path) -> Plain:
    """Starts a session only for what is not recorded."""
    session = functools.partial(request.getfixturevalue, "spark")
    return functools.partial(recorded.run, session, directory=tmp_path / "run")


@pytest.fixture
def live(spark: SparkSession, tmp_path: Path) -> Plain:
    """Always runs Spark."""
    return functools.partial(plain_spark.run, spark, directory=tmp_path / "run")


def settings_of(index: int) -> dict[str, str] | None:
    """Spark compiles its plans in one case of three, and interprets them in the others."""
    return plain_spark.INTERPRETED if index % 3 else None


def check_case(run: Plain, case: Case, style: Style, settings: dict[str, str] | None) -> None:
    """Asserts that Spark and the model emit the same, or both raise."""
    text = case.query.sql("s", style)
    rows = expected(case)
    if rows is None:
        with pytest.raises(plain_spark.SparkFailure, match=r"OVERFLOW|BY_ZERO|OUT_OF_RANGE"):
            run(text, case.schema, case.batches, case.delay, ansi=case.ansi, settings=settings)
        return
    output = run(text, case.schema, case.batches, case.delay, ansi=case.ansi, settings=settings)
    assert output.columns == model.columns(case.query, case.schema, ansi=case.ansi)
    compare.assert_same(output.rows, rows)


@pytest.mark.parametrize("index", range(RUNS))
def test_a_random_query_gives_what_plain_spark_gives(plain: Plain, index: int) -> None:
    check_case(plain, *random_cases()[index], settings_of(index))


@pytest.mark.parametrize("turn", range(RUN_AGAIN))
def test_spark_still_gives_what_was_recorded(live: Plain, chance: random.Random, turn: int) -> None:
    mine = range(turn, RUNS, RUN_AGAIN)
    index = chance.choice(mine)
    check_case(live, *random_cases()[index], settings_of(index))


@pytest.mark.parametrize("turn", range(FRESH_RUNS))
def test_a_fresh_query_gives_what_plain_spark_gives(
    live: Plain, chance: random.Random, turn: int
) -> None:
    emitting: list[tuple[Case, Style]] = []
    while not emitting:
        drawn = drawn_cases(chance.randrange(1 << 32))
        emitting = [pair for pair in drawn if expected(pair[0])]
    case, style = emitting[-1]
    check_case(live, case, style, settings_of(turn))


def times(case: Case) -> list[int]:
    """All event times of a case that are not NULL."""
    return [row["ts"] for batch in case.batches for row in batch if row["ts"] is not None]


def has_late_rows(case: Case) -> bool:
    """Whether some row is too late for all of its windows."""
    marks = model.watermarks(case.batches, case.delay)
    return any(
        row["ts"] is not None
        and all(
            start + case.query.window.range <= mark for start in case.query.window.starts(row["ts"])
        )
        for batch, mark in zip(case.batches[1:], marks, strict=False)
        for row in batch
    )


COVERED: dict[str, Callable[[Case], bool]] = {
    "late rows": has_late_rows,
    "rows out of order": lambda case: times(case) != sorted(times(case)),
    "empty batches": lambda case: any(not batch for batch in case.batches),
    "times before 1970": lambda case: min(times(case), default=0) < 0,
    "NULL event times": lambda case: any(
        row["ts"] is None for row in itertools.chain(*case.batches)
    ),
    "ANSI": lambda case: case.ansi,
    "no ANSI": lambda case: not case.ansi,
    "several batches": lambda case: len(case.batches) > 2,
    "tumbling windows": lambda case: case.query.window.slide == case.query.window.range,
    "sliding windows": lambda case: case.query.window.slide < case.query.window.range,
    "slides that do not divide the range": lambda case: bool(
        case.query.window.range % case.query.window.slide
    ),
    "start offsets": lambda case: case.query.window.start != 0,
    "windows of milliseconds": lambda case: case.query.window.range < SECOND,
    "windows of days": lambda case: case.query.window.range >= 86_400 * SECOND,
    "WHERE": lambda case: case.query.where is not None,
    "HAVING": lambda case: case.query.having is not None,
    "FILTER": lambda case: any(call.where is not None for call in case.query.aggregates),
    "keys that are expressions": lambda case: any(
        not isinstance(key, Column) for key in case.query.keys
    ),
}


@pytest.mark.parametrize("what", COVERED)
def test_the_random_cases_cover(what: str) -> None:
    assert sum(COVERED[what](case) for case, _ in random_cases()) >= 4


def test_the_random_cases_cover_all_aggregates_and_types() -> None:
    functions = {call.function for case, _ in random_cases() for call in case.query.aggregates}
    assert functions >= {
        *("count", "sum", "avg", "min", "max", "min_by", "max_by", "bool_and", "bool_or"),
        *("var_pop", "var_samp", "stddev_pop", "stddev_samp"),
        *("approx_count_distinct", "approx_percentile"),
    }
    types = {kind.name for case, _ in random_cases() for kind in case.schema.values()}
    assert types == {
        *("bigint", "int", "smallint", "double", "float", "decimal"),
        *("string", "boolean", "date", "timestamp"),
    }


COUNT = Item(Aggregate("count"), "n")
END = Item(WindowColumn("end"))
TUMBLING = Query(Window(10 * SECOND), (END, COUNT))


def seconds(*batches: Iterable[float | None]) -> list[list[dict[str, Any]]]:
    """Batches of rows that have an event time only."""
    return [
        [{"ts": None if time is None else round(time * SECOND)} for time in batch]
        for batch in batches
    ]


def check(
    plain: Plain,
    query: Query,
    batches: list[list[dict[str, Any]]],
    rows: Emitted,
    *,
    schema: dict[str, Type] | None = None,
    delay: int = 0,
    ansi: bool = True,
    settings: dict[str, str] | None = plain_spark.INTERPRETED,
) -> plain_spark.Output:
    """Asserts that Spark and the model both emit `rows`."""
    schema = {"ts": TIMESTAMP} | (schema or {})
    compare.assert_same(model.run(query, schema, batches, delay, ansi=ansi), rows)
    output = plain(query.sql("s"), schema, batches, delay, ansi=ansi, settings=settings)
    compare.assert_same(output.rows, rows)
    return output


def test_a_batch_emits_what_the_watermark_of_the_batches_before_it_has_passed(plain: Plain) -> None:
    batches = seconds([1, 12], [23], [34])
    check(
        plain,
        TUMBLING,
        batches,
        [
            (1, (10 * SECOND, 1)),
            (2, (20 * SECOND, 1)),
            (3, (30 * SECOND, 1)),
        ],
    )


def test_a_late_row_is_judged_by_the_watermark_of_the_batch_before(plain: Plain) -> None:
    # W: 0, 25, 25, 36. The row at 2 s comes in batch 1, when W_0 = 0: it still counts,
    # and batch 1 emits its window. The rows of batch 2 meet W_1 = 25.
    batches = seconds([25], [2], [3, 21, 36])
    check(
        plain,
        TUMBLING,
        batches,
        [(1, (10 * SECOND, 1)), (3, (30 * SECOND, 2))],
    )


def test_a_batch_without_rows_is_a_micro_batch_of_its_own(plain: Plain) -> None:
    output = check(
        plain,
        TUMBLING,
        seconds([1, 12], [], [], [23]),
        [(1, (10 * SECOND, 1)), (4, (20 * SECOND, 1))],
    )
    assert output.batches == 5


def test_the_watermark_starts_at_1970(plain: Plain) -> None:
    # Windows that end by 1970 are late from the first batch on; the one across is not.
    query = Query(Window(10 * SECOND, start=-5 * SECOND), (END, COUNT))
    batches = seconds([-100, -5.000001, -5, -1, 1], [-1, 20])
    check(plain, query, batches, [(2, (5 * SECOND, 4))])


def test_the_watermark_is_floored_to_milliseconds_and_keeps_its_delay(plain: Plain) -> None:
    # With a delay of 2 s, 11.999999 s gives W = 9.999 s, and 12 s gives W = 10 s.
    batches = seconds([1, 11.999999], [12], [13])
    check(
        plain,
        TUMBLING,
        batches,
        [(2, (10 * SECOND, 1))],
        delay=2 * SECOND,
    )


def test_rows_that_where_rejects_move_the_watermark(plain: Plain) -> None:
    query = Query(
        Window(10 * SECOND),
        (END, COUNT),
        where=Comparison("<", Column("a"), Literal(5, INT)),
    )
    batches = [[{"ts": SECOND, "a": 1}, {"ts": 50 * SECOND, "a": 9}], [{"ts": 2 * SECOND, "a": 1}]]
    check(plain, query, batches, [(1, (10 * SECOND, 2))], schema={"a": INT})


def test_null_event_times_neither_count_nor_move_the_watermark(plain: Plain) -> None:
    batches = seconds([None, 1], [None], [None, 11], [None])
    check(plain, TUMBLING, batches, [(3, (10 * SECOND, 1))])


def aggregate(function: str, argument: str = "a") -> Expression:
    """A call on one column."""
    return Aggregate(function, (Column(argument),))


def column_of(values: list[Any]) -> list[list[dict[str, Any]]]:
    """One window of values, then a row that closes it."""
    return [[{"ts": SECOND, "a": value} for value in values], [{"ts": 99 * SECOND, "a": None}]]


@pytest.mark.parametrize(
    ("kind", "function", "values", "result"),
    [
        pytest.param(BIGINT, "sum", [2**63 - 1, 1], -(2**63), id="bigint sums wrap"),
        pytest.param(BIGINT, "avg", [2**63 - 1, 2**63 - 1], 2.0**63, id="averages sum doubles"),
        pytest.param(DOUBLE, "max", [1.0, float("nan")], float("nan"), id="NaN is the largest"),
        pytest.param(DOUBLE, "var_samp", [4.0], None, id="no sample variance of one row"),
        pytest.param(
            decimal(38, 0), "sum", [Decimal(10**38 - 1), Decimal(1)], None, id="decimal sums"
        ),
        pytest.param(
            decimal(5, 2),
            "avg",
            [Decimal("0.01"), Decimal("0.02"), Decimal("0.02")],
            Decimal("0.016667"),
            id="short decimal averages",
        ),
        pytest.param(
            decimal(28, 6),
            "avg",
            [Decimal("0.000001"), Decimal("0.000002"), Decimal("0.000002")],
            Decimal("0.0000016667"),
            id="long decimal averages",
        ),
    ],
)
def test_aggregates_without_ansi(
    plain: Plain, kind: Type, function: str, values: list[Any], result: Any
) -> None:
    query = Query(Window(10 * SECOND), (Item(aggregate(function), "x"),))
    rows: Emitted = [(2, (result,))]
    check(plain, query, column_of(values), rows, schema={"a": kind}, ansi=False)


@pytest.mark.parametrize(
    ("kind", "expression", "values"),
    [
        pytest.param(BIGINT, aggregate("sum"), [2**63 - 1, 1], id="bigint sum"),
        pytest.param(
            decimal(38, 0), aggregate("sum"), [Decimal(10**38 - 1), Decimal(1)], id="decimal sum"
        ),
        pytest.param(
            INT,
            Aggregate("max", (Arithmetic("+", Column("a"), Literal(1, INT)),)),
            [2**31 - 1],
            id="int addition",
        ),
        pytest.param(
            INT,
            Aggregate("max", (Arithmetic("/", Literal(1, INT), Column("a")),)),
            [0],
            id="division by zero",
        ),
    ],
)
def test_ansi_raises(plain: Plain, kind: Type, expression: Expression, values: list[Any]) -> None:
    query = Query(Window(10 * SECOND), (Item(expression, "x"),))
    schema = {"ts": TIMESTAMP, "a": kind}
    batches = column_of(values)
    with pytest.raises(model.ModelError):
        model.run(query, schema, batches, 0, ansi=True)
    with pytest.raises(plain_spark.SparkFailure, match=r"OVERFLOW|BY_ZERO|OUT_OF_RANGE"):
        plain(query.sql("s"), schema, batches, 0)


def test_ansi_raises_on_rows_that_are_late(plain: Plain) -> None:
    quotient = Aggregate("max", (Arithmetic("/", Literal(1, INT), Column("a")),))
    query = Query(Window(10 * SECOND), (Item(quotient, "x"),))
    schema = {"ts": TIMESTAMP, "a": INT}
    batches = [[{"ts": 99 * SECOND, "a": 1}], [], [{"ts": SECOND, "a": 0}]]
    with pytest.raises(model.ModelError):
        model.run(query, schema, batches, 0)
    with pytest.raises(plain_spark.SparkFailure, match="DIVIDE_BY_ZERO"):
        plain(query.sql("s"), schema, batches, 0)


POSITIVE = Comparison(">", Column("b"), Literal(0, INT))
INVERSE = Arithmetic("/", Literal(1, INT), Column("a"))
GUARDED = Logical("and", POSITIVE, Comparison(">", INVERSE, Literal(0, INT)))


@pytest.mark.parametrize(
    "query",
    [
        pytest.param(Query(Window(10 * SECOND), (COUNT,), where=GUARDED), id="where"),
        pytest.param(
            Query(Window(10 * SECOND), (Item(Aggregate("count", where=GUARDED), "n"),)),
            id="filter",
        ),
    ],
)
def test_a_condition_stops_at_the_first_conjunct_that_is_not_true(
    plain: Plain, query: Query
) -> None:
    batches: list[list[dict[str, Any]]] = [
        [
            {"ts": SECOND, "a": 0, "b": None},
            {"ts": SECOND, "a": 0, "b": -1},
            {"ts": SECOND, "a": 1, "b": 1},
        ],
        [{"ts": 99 * SECOND, "a": 0, "b": None}],
    ]
    schema = {"a": INT, "b": INT}
    check(plain, query, batches, [(2, (1,))], schema=schema, settings=None)


def test_nan_and_negative_zero_are_one_key_each(plain: Plain) -> None:
    query = Query(Window(10 * SECOND), (Item(Column("a")), COUNT), keys=(Column("a"),))
    values = [0.0, -0.0, float("nan"), float("-nan"), None]
    check(
        plain,
        query,
        column_of(values),
        [(2, (0.0, 2)), (2, (float("nan"), 2)), (2, (None, 1))],
        schema={"a": DOUBLE},
    )
