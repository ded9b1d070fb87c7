from __future__ import annotations

from weft.sql import statements


def test_text_without_headers_is_one_query_without_a_name() -> None:
    assert list(statements("SELECT 1\n")) == [(None, "SELECT 1\n", 0)]


def test_headers_name_the_queries_and_lines_count_from_the_file() -> None:
    text = "-- all our queries\n\n-- name: a\nSELECT 1;\n\n  --name:  b c \nSELECT\n 2"
    assert list(statements(text)) == [("a", "SELECT 1;\n\n", 3), ("b c", "SELECT\n 2", 6)]


def test_a_query_above_the_first_header_has_no_name() -> None:
    text = "SELECT 0;\n-- name: a\nSELECT 1"
    assert list(statements(text)) == [(None, "SELECT 0;\n", 0), ("a", "SELECT 1", 2)]


def test_a_header_at_the_end_is_an_empty_query() -> None:
    assert list(statements("-- name: a")) == [("a", "", 0)]


def test_windows_line_ends_are_no_part_of_a_name() -> None:
    assert [found.name for found in statements("-- name: a\r\nSELECT 1\r\n")] == ["a"]


def test_text_that_is_no_sql_above_a_header_is_kept_for_the_error() -> None:
    assert [found.name for found in statements("it's\n-- name: a\nSELECT 1")] == [None, "a"]
