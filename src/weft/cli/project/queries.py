"""The query files of a project: `queries/NAME.sql`, or many statements under `-- name: x`.

A comment `-- emit: changes` says what an aggregation join emits. The files are the desired state. A statement that differs from a registered query only in
layout and comments is the same query.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from weft.catalog.store import check_name
from weft.cli.project.problems import Problem
from weft.errors import CatalogError, ProjectError, SqlError, WeftError
from weft.sql import statements
from weft.sql.reading.source import read

_EMIT = re.compile(r"^[ \t]*--[ \t]*emit:[ \t]*(\S+)[ \t]*$", re.MULTILINE | re.IGNORECASE)
_BACKFILL = re.compile(r"^[ \t]*--[ \t]*backfill[ \t]*$", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class QueryFile:
    """One query of a project and where its text stands."""

    name: str
    sql: str
    path: Path
    lines_above: int

    @property
    def emit(self) -> str | None:
        return emit_of(self.sql)

    @property
    def backfill(self) -> bool:
        return backfill_of(self.sql)

    @property
    def file(self) -> str:
        return f"{self.path.parent.name}/{self.path.name}"

    def problem(self, error: WeftError) -> Problem:
        return Problem.of(error.in_query(self.name), self.file, self.lines_above)


def read_queries(folder: Path) -> tuple[list[QueryFile], list[Problem]]:
    """All queries of a folder in the order of files and statements, and what is wrong."""
    queries: dict[str, QueryFile] = {}
    problems: list[Problem] = []
    if not folder.is_dir():
        detail = "this folder is missing; it holds the queries, each in a file NAME.sql"
        problems.append(Problem(folder.name, None, None, "PROJECT", detail))
    for path in sorted(folder.glob("*.sql")):
        file = f"{path.parent.name}/{path.name}"
        try:
            parts = list(statements(path.read_text(encoding="utf-8")))
        except UnicodeDecodeError as error:
            detail = f"the file is not UTF-8 text: {error.reason} at byte {error.start}"
            problems.append(Problem(file, None, None, "PARSE_ERROR", detail))
            continue
        except OSError as error:
            detail = f"the file cannot be read: {error.strerror}"
            problems.append(Problem(file, None, None, "PROJECT", detail))
            continue
        except SqlError as error:
            problems.append(Problem.of(error, file))
            continue
        for part in parts:
            query = QueryFile(part.name or path.stem, part.sql, path, part.line)
            same_name = queries.get(query.name)
            try:
                check_name(query.name, "query")
                if same_name is not None:
                    raise CatalogError(
                        "DUPLICATE_NAME", kind=f"query in {same_name.file}", name=query.name
                    )
            except CatalogError as error:
                error.line, error.column = 1 if part.line == 0 else 0, 1
                problems.append(query.problem(error))
                continue
            queries[query.name] = query
    return list(queries.values()), problems


def emit_of(sql: str) -> str | None:
    """What a query says that it emits, in a comment of its own.

    >>> emit_of("-- emit: changes\\nSELECT 1"), emit_of("SELECT 1")
    ('changes', None)
    """
    found = _EMIT.search(sql)
    return None if found is None else found.group(1)


def with_emit(sql: str, emit: str | None) -> str:
    """The query with such a comment."""
    return sql if emit is None or emit_of(sql) == emit else f"-- emit: {emit}\n{_EMIT.sub('', sql)}"


def backfill_of(sql: str) -> bool:
    """Whether a query says that it sees the rows of before its registration, in a comment of its own.

    >>> backfill_of("-- backfill\\nSELECT 1"), backfill_of("SELECT 1")
    (True, False)
    """
    return _BACKFILL.search(sql) is not None


def with_backfill(sql: str, backfill: bool) -> str:
    """The query with such a comment, if it is wanted."""
    return f"-- backfill\n{sql}" if backfill and not backfill_of(sql) else sql


def same_query(first: str, second: str) -> bool:
    """Whether two texts differ in layout and comments only.

    >>> same_query("SELECT 1 -- one", "SELECT\\n  1;")
    True
    """
    if first.strip() == second.strip():
        return True
    try:
        return _words(first) == _words(second)
    except SqlError:
        return False


def _words(sql: str) -> list[str]:
    source = read(sql)
    words = [source.text[token.start : token.stop] for token in source.tokens[:-1]]
    while words and words[-1] == ";":
        words.pop()
    return words


def write_query(folder: Path, name: str, sql: str) -> Path:
    """Put a query in a new file of its own: of several processes that do, one succeeds."""
    path = folder / f"{name}.sql"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _beside(path, sql.strip() + "\n") as temporary:
            os.link(temporary, path)
    except FileExistsError:
        kind = f"query in {path.parent.name}/{path.name}"
        raise CatalogError("DUPLICATE_NAME", query=name, kind=kind, name=name) from None
    except OSError as error:
        detail = f"cannot write {path}: {error.strerror or error}"
        raise ProjectError("PROJECT", query=name, detail=detail) from error
    return path


def remove_query(query: QueryFile) -> None:
    """Take a query out of its file; a file without queries goes."""
    try:
        text = query.path.read_text(encoding="utf-8")
    except FileNotFoundError:  # another process was faster
        return
    if all((part.name or query.path.stem) == query.name for part in statements(text)):
        query.path.unlink(missing_ok=True)
        return
    lines = text.splitlines(keepends=True)
    first = max(0, query.lines_above - 1)
    count = query.sql.count("\n") + (0 if query.sql.endswith("\n") else 1)
    _replace(query.path, "".join(lines[:first] + lines[query.lines_above + count :]))


def _replace(path: Path, text: str) -> None:
    """Write a file in one piece, so that a reader sees the old text or the new."""
    with _beside(path, text) as temporary:
        os.replace(temporary, path)


@contextmanager
def _beside(path: Path, text: str) -> Iterator[Path]:
    """A hidden file with the text in the same folder, gone after the block."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        temporary.write_text(text, encoding="utf-8")
        yield temporary
    finally:
        temporary.unlink(missing_ok=True)
