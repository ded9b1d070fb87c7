"""Query files: one query, many queries, none; comparing and removing."""

from __future__ import annotations

from pathlib import Path

import pytest

from weft.cli.project.queries import read_queries, remove_query, same_query, write_query

MANY = """-- several queries
-- name: a
SELECT 1
FROM x;

-- name: b
SELECT 2;
-- name: c
SELECT 3
"""


def test_a_file_is_named_after_itself_or_names_its_statements(tmp_path: Path) -> None:
    (tmp_path / "hot.sql").write_text("SELECT 0")
    (tmp_path / "many.sql").write_text(MANY)
    found, problems = read_queries(tmp_path)
    assert not problems
    assert [(query.name, query.file, query.lines_above) for query in found] == [
        ("hot", f"{tmp_path.name}/hot.sql", 0),
        ("a", f"{tmp_path.name}/many.sql", 2),
        ("b", f"{tmp_path.name}/many.sql", 6),
        ("c", f"{tmp_path.name}/many.sql", 8),
    ]


def test_names_that_are_taken_or_malformed_are_told_at_their_header(tmp_path: Path) -> None:
    (tmp_path / "1.sql").write_text(MANY.replace("name: c", "name: a"))
    (tmp_path / "2.sql").write_text("-- name: b\nSELECT 1\n-- name: no name\nSELECT 2")
    found, problems = read_queries(tmp_path)
    assert [query.name for query in found] == ["a", "b"]
    assert [str(problem).split(": ")[0] for problem in problems] == [
        f"{tmp_path.name}/1.sql:8:1",
        f"{tmp_path.name}/2.sql:1:1",
        f"{tmp_path.name}/2.sql:3:1",
    ]
    assert [problem.error_class for problem in problems] == [
        "DUPLICATE_NAME",
        "DUPLICATE_NAME",
        "BAD_NAME",
    ]


def test_a_file_that_cannot_be_read_stops_no_other(tmp_path: Path) -> None:
    (tmp_path / "bad.sql").write_bytes(b"SELECT \xff")
    (tmp_path / "open.sql").write_text("-- name: a\nSELECT 'oops\n")
    (tmp_path / "good.sql").write_text("SELECT 1")
    found, problems = read_queries(tmp_path)
    assert "good" in [query.name for query in found]
    assert any("not UTF-8" in problem.message for problem in problems)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("SELECT a  FROM b", "SELECT a\nFROM b;  -- the same", True),
        ("SELECT 'a  b'", "SELECT 'a b'", False),
        ("SELECT a FROM b", "SELECT a FROM c", False),
        ("SELECT 'open", "SELECT 'open", True),
        ("SELECT 'open", "SELECT 1", False),
    ],
)
def test_layout_and_comments_are_no_change(first: str, second: str, same: bool) -> None:
    assert same_query(first, second) is same


@pytest.mark.parametrize("name", ["a", "b", "c"])
def test_removing_one_of_many_leaves_the_others_as_they_were(tmp_path: Path, name: str) -> None:
    (tmp_path / "many.sql").write_text(MANY)
    before, _ = read_queries(tmp_path)
    remove_query(next(query for query in before if query.name == name))
    after, problems = read_queries(tmp_path)
    assert not problems
    assert {q.name: q.sql.strip() for q in after} == {
        q.name: q.sql.strip() for q in before if q.name != name
    }


def test_the_last_query_takes_its_file_with_it(tmp_path: Path) -> None:
    path = write_query(tmp_path / "queries", "hot", "SELECT 1\n\n")
    assert path.read_text() == "SELECT 1\n"
    (query,), _ = read_queries(tmp_path / "queries")
    remove_query(query)
    assert not path.exists()
