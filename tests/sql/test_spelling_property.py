"""Queries that differ only in spelling bind to equal queries."""

from __future__ import annotations

import dataclasses
import re

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sql.support import COLUMNS, FakeAnalyzer, query

from weft.algebra.query import Query

NUMBERS = ["price", "auction", "d", "dec"]
SEPARATORS = [" ", "\n", "\t ", " /* hm */ ", " -- why\n"]


def conditions() -> st.SearchStrategy[str]:
    compared = st.builds(
        "{} {} {}".format,
        st.sampled_from(NUMBERS),
        st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"]),
        st.sampled_from(["0", "17", "2.5", "1e3", "price", "NULL"]),
    )
    simple = st.one_of(
        compared,
        st.sampled_from(
            [
                "channel = 'Google'",
                "channel LIKE 'a%'",
                "channel IN ( 'a' , 'It''s' )",
                "price BETWEEN 1 AND 5",
                "price IS NOT NULL",
                "ok",
                "upper ( channel ) = 'A'",
                "CASE WHEN ok THEN price > 1 ELSE FALSE END",
            ]
        ),
    )
    return st.recursive(
        simple,
        lambda inner: st.one_of(
            st.builds("( {} AND {} )".format, inner, inner),
            st.builds("{} OR {}".format, inner, inner),
            st.builds("NOT ( {} )".format, inner),
        ),
        max_leaves=4,
    )


AGGREGATES = [
    "COUNT ( * )",
    "SUM ( price )",
    "AVG ( d ) FILTER ( WHERE price > 3 )",
    "COUNT ( DISTINCT channel )",
    "MAX ( price + 1 )",
    "FIRST ( channel )",
    "MIN_BY ( price , d )",
]
KEYS = ["auction", "channel", "price % 3", "upper ( channel )"]


@st.composite
def queries(draw: st.DrawFn) -> str:
    keys = draw(st.lists(st.sampled_from(KEYS), max_size=2, unique=True))
    aggregates = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=3))
    columns = [f"{key} AS key{index}" for index, key in enumerate(keys)]
    columns += [f"{call} AS value{index}" for index, call in enumerate(aggregates)]
    group = draw(st.permutations(["window ( ts , '1 hour' , '5 minutes' )", *keys]))
    where = draw(st.none() | conditions())
    having = draw(st.sampled_from(["", "HAVING COUNT ( * ) > 5", "HAVING value0 IS NOT NULL"]))
    parts = ["SELECT", " , ".join(columns), "FROM bids AS b"]
    parts += [f"WHERE {where}"] if where else []
    parts += ["GROUP BY", " , ".join(group), having]
    return " ".join(part for part in parts if part)


@st.composite
def respelled(draw: st.DrawFn, sql: str) -> str:
    """The same query with other case, spacing, quoting, qualification and quotes."""
    pieces = []
    for token in re.findall(r"'(?:''|[^'])*'|\S+", sql):
        word = token
        if token in COLUMNS:
            spelling = draw(st.sampled_from([str.lower, str.upper, str.title]))
            word = spelling(token)
            if draw(st.booleans()):
                word = f"`{word}`"
            qualifier = draw(st.sampled_from(["", "", "b.", "B . ", "`b`."]))
            word = qualifier + word
        elif re.fullmatch(r"[A-Za-z_]+", token):
            word = draw(st.sampled_from([str.lower, str.upper, str.title]))(token)
        elif token.startswith("'") and "''" not in token and draw(st.booleans()):
            word = f'"{token[1:-1]}"'
        elif token == "<>":
            word = draw(st.sampled_from(["<>", "!="]))
        elif token == "=":
            word = draw(st.sampled_from(["=", "=="]))
        pieces.append(word)
    gaps = [draw(st.sampled_from(SEPARATORS)) for _ in pieces]
    text = "".join(piece + gap for piece, gap in zip(pieces, gaps, strict=True))
    return text + draw(st.sampled_from(["", ";", " ; -- end"]))


def meaning(found: Query) -> Query:
    return dataclasses.replace(found, sql="")


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_spelling_does_not_matter(data: st.DataObject) -> None:
    sql = data.draw(queries())
    other = data.draw(respelled(sql))
    first, second = query(sql, FakeAnalyzer()), query(other, FakeAnalyzer())
    # Aliases keep the user's spelling; everything else is free of it.
    names = [column.name.lower() for column in first.columns]
    assert names == [column.name.lower() for column in second.columns]
    renamed = tuple(
        dataclasses.replace(column, name=original.name)
        for column, original in zip(second.columns, first.columns, strict=True)
    )
    assert meaning(first) == meaning(dataclasses.replace(second, columns=renamed))
