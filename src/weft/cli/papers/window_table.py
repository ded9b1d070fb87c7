"""Reading a table of windows: CSV with columns name, range, slide and optionally start.

Numbers are whole or decimal, in any unit of time; they are scaled to whole ticks without loss.
Every bad value is told with its line and its place in the line.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from io import StringIO
from pathlib import Path

import numpy as np

from weft.cli.project.problems import InvalidProject, Problem
from weft.errors import TableError, WeftError
from weft.optimizer.edges.workload import LARGEST, Workload

NEEDED = ("name", "range", "slide")
_OPTIONAL = ("start",)
_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_MOST_DIGITS = 12
_MOST_PROBLEMS = 20

_Row = tuple[int, list[str]]


def read_windows(path: Path) -> Workload:
    """The queries of a file; `InvalidProject` with every problem found."""
    rows = _rows(path)
    line, header = next(rows, (1, []))
    if not header:
        raise _invalid(path, [TableError("BAD_TABLE", detail="the file is empty", line=1)])
    places = _places(path, line, [cell.strip().lower() for cell in header])
    table = list(rows)
    if not table:
        detail = "there is no query below the header"
        raise _invalid(path, [TableError("BAD_TABLE", detail=detail, line=line)])
    _same_length(path, header, table)
    names = [cells[places["name"]].strip() for _, cells in table]
    _check_names(path, names, table, places["name"])
    return _whole(names, table, places) or _decimal(path, names, table, places)


def _rows(path: Path) -> Iterator[_Row]:
    """Lines that are not blank, split into cells."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise _invalid(path, [TableError("BAD_TABLE", detail="there is no such file")]) from None
    except IsADirectoryError:
        raise _invalid(path, [TableError("BAD_TABLE", detail="this is a folder")]) from None
    except PermissionError:
        raise _invalid(path, [TableError("BAD_TABLE", detail="it cannot be read")]) from None
    except UnicodeDecodeError as error:
        detail = f"this is not UTF-8 text: byte {error.start} cannot be read"
        raise _invalid(path, [TableError("BAD_TABLE", detail=detail)]) from None
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            problem = TableError("BAD_TABLE", detail=str(error), line=reader.line_num, column=1)
            raise _invalid(path, [problem]) from None
        if any(cell.strip() for cell in cells):
            yield reader.line_num, cells


def _places(path: Path, line: int, header: Sequence[str]) -> dict[str, int]:
    missing = [name for name in NEEDED if name not in header]
    double = [name for name in (*NEEDED, *_OPTIONAL) if header.count(name) > 1]
    if missing or double:
        wrong = f"no column {', '.join(missing)}" if missing else f"two columns {double[0]}"
        detail = f"{wrong}; the first line must name the columns name, range, slide"
        raise _invalid(path, [TableError("BAD_TABLE", detail=detail, line=line, column=1)])
    return {name: header.index(name) for name in (*NEEDED, *_OPTIONAL) if name in header}


def _same_length(path: Path, header: Sequence[str], table: Sequence[_Row]) -> None:
    problems = [
        TableError(
            "BAD_TABLE", detail=f"{len(cells)} values under {len(header)} columns", line=line
        )
        for line, cells in table
        if len(cells) != len(header)
    ]
    if problems:
        raise _invalid(path, problems)


def _check_names(path: Path, names: Sequence[str], table: Sequence[_Row], place: int) -> None:
    if len(set(names)) == len(names) and "" not in names:
        return
    problems: list[WeftError] = []
    seen: set[str] = set()
    for name, (line, cells) in zip(names, table):
        column = _column(cells, place)
        if not name:
            problems.append(
                TableError("BAD_TABLE", detail="the name is empty", line=line, column=column)
            )
        elif name in seen:
            problems.append(
                TableError("DUPLICATE_NAME", kind="query", name=name, line=line, column=column)
            )
        seen.add(name)
    raise _invalid(path, problems)


def _whole(names: Sequence[str], table: Sequence[_Row], places: dict[str, int]) -> Workload | None:
    """The workload if all numbers are plain whole ones and make windows: the fast way."""
    columns = {}
    for name, place in places.items():
        if name == "name":
            continue
        cells = [cells[place] for _, cells in table]
        if not "".join(cells).isascii() or any("_" in cell for cell in cells):
            return None
        try:
            columns[name] = np.array([int(cell) for cell in cells], dtype=np.int64)
        except (ValueError, OverflowError):
            return None
    length, slide = columns["range"], columns["slide"]
    if min(length.min(), slide.min()) <= 0 or max(length.max(), slide.max()) >= LARGEST:
        return None
    start = columns.get("start")
    if start is not None and (np.abs(start) >= slide).any():
        return None
    return Workload.of_columns(names, length, slide, start)


def _decimal(
    path: Path, names: Sequence[str], table: Sequence[_Row], places: dict[str, int]
) -> Workload:
    """The workload in ticks of the finest decimal; every bad value is a problem."""
    problems: list[WeftError] = []
    values: dict[str, list[Decimal]] = {name: [] for name in places if name != "name"}
    for name, (line, cells) in zip(names, table):
        row: dict[str, Decimal] = {}
        for column, read in values.items():
            text = cells[places[column]].strip()
            number = _number(column, text)
            if isinstance(number, str):
                where = _column(cells, places[column])
                problems.append(
                    TableError("BAD_WINDOW", query=name, detail=number, line=line, column=where)
                )
                continue
            row[column] = number
            read.append(number)
        if "start" in row and "slide" in row and abs(row["start"]) >= row["slide"]:
            detail = f"start {row['start']} must be shorter than the slide {row['slide']}"
            where = _column(cells, places["start"])
            problems.append(
                TableError("BAD_WINDOW", query=name, detail=detail, line=line, column=where)
            )
    if problems:
        raise _invalid(path, problems)
    digits = max(-min(_exponent(value), 0) for column in values.values() for value in column)
    ticks = {
        name: [int(value.scaleb(digits)) for value in column] for name, column in values.items()
    }
    for name in ("range", "slide"):
        for place, tick in enumerate(ticks[name]):
            if tick >= LARGEST:
                line, cells = table[place]
                finest = f", counted in steps of 1e-{digits}" if digits else ""
                detail = f"{name} {values[name][place]} is too large{finest}"
                where = _column(cells, places[name])
                problems.append(
                    TableError(
                        "BAD_WINDOW", query=names[place], detail=detail, line=line, column=where
                    )
                )
    if problems:
        raise _invalid(path, problems)
    return Workload.of_columns(
        names, ticks["range"], ticks["slide"], ticks.get("start"), unit=10**digits
    )


def _number(column: str, text: str) -> Decimal | str:
    """The number, or what is wrong with it."""
    if not _DECIMAL.fullmatch(text):
        return f"{column} '{text}' is not a number"
    number = Decimal(text)
    if column != "start" and number <= 0:
        return f"{column} {text} must be positive"
    if number and number.adjusted() > 18:
        return f"{column} {text} is too large"
    if _exponent(number) < -_MOST_DIGITS:
        return f"{column} {text} has more than {_MOST_DIGITS} decimal places"
    return number


def _exponent(number: Decimal) -> int:
    """Minus the number of decimal places, without trailing zeros."""
    if not number:
        return 0
    _, digits, exponent = number.as_tuple()
    zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    return exponent + zeros if isinstance(exponent, int) else 0


def _column(cells: Sequence[str], place: int) -> int:
    return 1 + sum(len(cell) + 1 for cell in cells[:place])


def _invalid(path: Path, problems: Sequence[WeftError]) -> InvalidProject:
    shown = [Problem.of(problem, str(path)) for problem in problems[:_MOST_PROBLEMS]]
    if len(problems) > _MOST_PROBLEMS:
        more = TableError("BAD_TABLE", detail=f"and {len(problems) - _MOST_PROBLEMS} more problems")
        last = problems[-1].line
        shown.append(Problem(str(path), last, None, more.error_class, more.message))
    return InvalidProject(shown)
