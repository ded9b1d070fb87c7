"""The house: rooms small enough to know, modules short enough to read, values that nobody changes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import weft

SOURCE = Path(weft.__file__).parent
MOST_MODULES = 12
MOST_LINES = 600
CHANGEABLE = {"dict", "list", "set", "bytearray", "defaultdict", "Counter", "deque"}

FOLDERS = sorted({path.parent for path in SOURCE.rglob("*.py")})
ROOMS = [folder for folder in FOLDERS if folder != SOURCE]


def test_a_folder_has_a_dozen_modules_at_most() -> None:
    modules = {
        str(folder.relative_to(SOURCE)): len([*folder.glob("*.py")]) - 1 for folder in FOLDERS
    }
    assert {name: count for name, count in modules.items() if count > MOST_MODULES} == {}
    assert max(modules.values()) > MOST_MODULES / 2, "nothing was counted"


@pytest.mark.parametrize("folder", ROOMS, ids=lambda folder: str(folder.relative_to(SOURCE)))
def test_a_room_says_what_is_in_it(folder: Path) -> None:
    """The docstring names every module, and every room inside."""
    docstring = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    rooms = {path.parent.name for path in folder.glob("*/__init__.py")}
    words = set(re.findall(r"`(\w+)/?`", docstring))
    assert (modules | rooms) - words == set()
    assert len(docstring) > 80, "one line does not say what belongs here and what does not"


def test_no_module_has_more_than_600_lines() -> None:
    paths = [*SOURCE.rglob("*.py"), *Path(__file__).parent.rglob("*.py")]
    lines = {str(path): len(path.read_text().splitlines()) for path in paths}
    assert {path: count for path, count in lines.items() if count > MOST_LINES} == {}
    assert len(lines) > 500, "nothing was counted"


def frozen_fields(tree: ast.Module) -> Iterator[tuple[str, ast.AnnAssign]]:
    """The fields of all frozen dataclasses of a module, each with the name of its class."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and any(
            "frozen=True" in ast.unparse(decorator) for decorator in node.decorator_list
        ):
            for statement in node.body:
                if isinstance(statement, ast.AnnAssign):
                    yield node.name, statement


def test_a_frozen_value_holds_nothing_that_can_be_changed() -> None:
    """Its fields are tuples, or of types without a way to change them: mypy refuses the rest."""
    fields = [
        (f"{path.relative_to(SOURCE)}: {owner}.{ast.unparse(field.target)}", field.annotation)
        for path in SOURCE.rglob("*.py")
        for owner, field in frozen_fields(ast.parse(path.read_text()))
    ]
    assert len(fields) > 500, "nothing was looked at"
    changeable = [
        name
        for name, annotation in fields
        if any(
            isinstance(part, ast.Name) and part.id in CHANGEABLE for part in ast.walk(annotation)
        )
    ]
    assert changeable == []
