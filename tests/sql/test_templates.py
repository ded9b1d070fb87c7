"""A query bound by a template equals the query bound from its whole text."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.algebra.query import Field, Query, StreamSchema
from weft.errors import SqlError
from weft.sql.binding.bind import bind
from weft.sql.binding.templates import Templates, _constant_tokens, split, with_constants
from weft.sql.reading.source import read
from weft.sql.scopes.inputs import Inputs
from weft.sql.typing.analyzer import remembering

STREAM = StreamSchema(
    "events",
    (
        Field("auction", "bigint"),
        Field("small", "int"),
        Field("channel", "string"),
        Field("day", "date"),
        Field("ts", "timestamp"),
    ),
    "ts",
    0,
)
STREAMS = {"events": STREAM}


class _Unasked:
    """Knows no types: the queries here are bound without Spark."""

    def types(self, fields: object, expressions: Sequence[str]) -> tuple[str, ...]:
        return ("boolean",) * len(expressions)

    def output_names(self, fields: object, expressions: Sequence[str]) -> tuple[str, ...]:
        return tuple(expressions)


ANALYZER = _Unasked()


def _plain(sql: str) -> object:
    try:
        return bind("q", sql, STREAMS, ANALYZER, query_id="q@1")  # type: ignore[arg-type]
    except SqlError as error:
        return str(error)


def _templates() -> Templates:
    return Templates(Inputs(STREAMS), remembering(ANALYZER, True), True, False)  # type: ignore[arg-type]


whole = st.one_of(st.integers(0, 5), st.sampled_from([2**31 - 1, 2**31, 2**63 - 1, 2**63, 10**30]))
text = st.sampled_from(["", "a", "a%", "17", "2020-01-01", "1 2", "no date", "ä", "a'b", "x`y"])
lengths = st.sampled_from(["10 seconds", "1 minute", "7 seconds", "0 seconds", "often", "1 month"])


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Texts of a few shapes, with constants of all kinds; some are errors, some fall back."""

    def number() -> str:
        return str(draw(whole))

    def string() -> str:
        return "'" + draw(text).replace("'", "''") + "'"

    def constant() -> str:
        return number() if draw(st.booleans()) else string()

    conditions = [
        lambda: f"auction BETWEEN {number()} AND {number()}",
        lambda: f"channel = {constant()}",
        lambda: f"(auction % {number()}) = {number()}",
        lambda: f"(small > {constant()} OR channel IN ({string()}, {string()}))",
        lambda: f"day >= DATE {string()}",
        lambda: f"channel LIKE {string()} AND small = -{number()}",
        lambda: f"{number()} = {number()}",
        lambda: f"small / {number()} > {number()}",
        lambda: f"`auction` < {number()} AND NOT (small = {number()})",
    ]
    where = ""
    if draw(st.integers(0, 4)):
        where = f"WHERE {draw(st.sampled_from(conditions))()} "
    selected = draw(
        st.sampled_from(
            ["COUNT(*) AS n", "SUM(auction) AS n", "COUNT(*) FILTER (WHERE small > 1) AS n"]
        )
    )
    group = draw(st.sampled_from(["channel", "auction % 3", "1"]))
    key = "channel" if group == "1" else group
    having = f" HAVING COUNT(*) > {number()}" if draw(st.booleans()) else ""
    window = f"window(ts, '{draw(lengths)}', '{draw(lengths)}')"
    time = draw(st.sampled_from(["window.start AS start", f"{window}.start AS start"]))
    return f"SELECT {key} AS k, {time}, {selected} FROM events {where}GROUP BY {group}, {window}{having}"


@given(st.lists(queries(), min_size=2, max_size=12))
def test_a_template_gives_what_the_whole_text_gives(texts: list[str]) -> None:
    templates = _templates()
    for sql in texts:
        expected = _plain(sql)
        by_template = templates.bound("q", sql, "q@1")
        if by_template is not None:
            assert by_template == expected
        elif isinstance(expected, Query):
            assert templates.learn(expected) == expected


@given(queries(), st.data())
def test_tokens_with_other_constants_are_those_of_the_text(sql: str, data: st.DataObject) -> None:
    parted = split(sql)
    if parted is None:
        return
    shape, constants = parted
    source = read(sql)
    tokens_of = _constant_tokens(source, constants)
    assert tokens_of is not None
    others = tuple(
        "'" + data.draw(st.text("ab 1", min_size=1)).strip() + "x'"
        if kind == "s"
        else str(data.draw(whole))
        for kind in shape.kinds
    )
    pieces = shape.text.split("?")
    changed = pieces[0] + "".join(c + p for c, p in zip(others, pieces[1:], strict=True))
    assert with_constants(source, tokens_of, changed, others) == read(changed)


def test_constants_of_where_and_of_the_window_may_differ_and_others_may_not() -> None:
    templates = _templates()
    sql = "SELECT COUNT(*) AS n FROM events WHERE auction = {} GROUP BY window(ts, '{}') HAVING COUNT(*) > {}"
    first = _plain(sql.format(1, "1 minute", 5))
    assert isinstance(first, Query)
    templates.learn(first)
    other = sql.format(2**40, "1 hour", 5)
    assert templates.bound("q", other, "q@1") == _plain(other)
    assert templates.bound("q", sql.format(1, "1 minute", 6), "q@1") is None


def test_queries_of_one_template_consist_of_the_same_objects() -> None:
    templates = _templates()
    sql = "SELECT channel, COUNT(*) AS n FROM events WHERE auction = {} GROUP BY channel, window(ts, '1 minute')"
    first = templates.learn(_plain(sql.format(1)))  # type: ignore[arg-type]
    second = templates.bound("q", sql.format(2), "q@2")
    third = templates.bound("r", sql.format(2), "r@3")
    assert second is not None and third is not None
    assert first.keys is second.keys and first.aggregates is second.aggregates
    assert second.predicate is third.predicate and second.predicate != first.predicate


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'it''s'",
        "SELECT 'a' 'b'",
        'SELECT "a"',
        "SELECT 1 -- one",
        "SELECT /* 1 */ 2",
        r"SELECT 'a\n'",
        "SELECT `it's` = 'x`'",
    ],
)
def test_texts_whose_constants_a_pattern_cannot_tell_have_no_template(sql: str) -> None:
    assert split(sql) is None


@pytest.mark.parametrize("zero", ["0.0D", "0E0"])
def test_a_zero_below_zero_is_another_constant(zero: str) -> None:
    """The two are equal as numbers, and differ in what a column shows."""
    templates = _templates()
    sql = "SELECT channel, {} AS z, COUNT(*) AS n FROM events GROUP BY channel, window(ts, '1 minute')"
    above, below = (_plain(sql.format(number)) for number in (zero, f"-{zero}"))
    assert isinstance(above, Query) and isinstance(below, Query)
    assert above.columns != below.columns
    templates.learn(above)
    assert templates.learn(below).columns is not templates.learn(above).columns


def test_a_decimal_has_no_zero_below_zero() -> None:
    """Spark promotes -0.0 to 0.0 where it meets a double."""
    sql = (
        "SELECT channel, AVG(small) * {} AS z FROM events GROUP BY channel, window(ts, '1 minute')"
    )
    below, above = (_plain(sql.format(number)) for number in ("-0.0", "0.0"))
    assert isinstance(above, Query) and isinstance(below, Query)
    assert "-0.0" not in repr(below.columns) and below.columns == above.columns
