"""A project folder: `weft.yaml`, checked against its schema, and `queries/*.sql`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from weft.cli.project.positions import Located, read_yaml
from weft.cli.project.problems import InvalidProject, Problem
from weft.cli.project.validation import FILE, check_values, validate
from weft.errors import ProjectError

QUERIES = "queries"
_VARIABLE = re.compile(r"\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True)
class DeclaredRelation:
    """A stream or a table as `weft.yaml` describes it; a table has no event time."""

    name: str
    format: str
    path: str | None = None
    schema: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    select: tuple[str, ...] = ()
    time: str | None = None
    watermark: str | None = None


@dataclass(frozen=True)
class Project:
    """What `weft.yaml` says. Paths are absolute, variables are put in."""

    folder: Path
    name: str
    checkpoint: str
    catalog: str | None
    trigger: str | None
    spark: Mapping[str, str]
    streams: tuple[DeclaredRelation, ...]
    tables: tuple[DeclaredRelation, ...]
    sink: Any
    routes: Mapping[str, Any]
    settings: Mapping[str, Any]
    located: Located = field(repr=False, compare=False, default_factory=Located)

    @property
    def queries(self) -> Path:
        return self.folder / QUERIES

    def problem(self, detail: str, *path: str) -> Problem:
        """A problem at a place in `weft.yaml`."""
        line, column = self.located.place(path)
        return Problem(FILE, line, column, "PROJECT", detail)

    def error(self, detail: str, *path: str) -> InvalidProject:
        return InvalidProject([self.problem(detail, *path)])


def load(folder: Path) -> Project:
    """Read and check `weft.yaml`; raises `InvalidProject` with all that is wrong."""
    file = folder / FILE
    if not file.is_file():
        detail = f"there is no {FILE} in {folder}; `weft init {folder}` writes a small project"
        raise ProjectError("PROJECT", detail=detail)
    try:
        located = read_yaml(file.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        detail = f"this is not valid YAML: {error.problem or error}"
        raise InvalidProject([Problem(FILE, line, column, "PROJECT", detail)]) from None
    except UnicodeDecodeError as error:
        detail = f"the file is not UTF-8 text: {error.reason} at byte {error.start}"
        raise InvalidProject([Problem(FILE, 1, 1, "PROJECT", detail)]) from None
    except (yaml.YAMLError, RecursionError) as error:
        why = "values are nested too deeply" if isinstance(error, RecursionError) else str(error)
        detail = f"this is not valid YAML: {why}"
        raise InvalidProject([Problem(FILE, 1, 1, "PROJECT", detail)]) from None
    problems = list(validate(located))
    if problems:
        raise InvalidProject(problems)
    missing: list[Problem] = []
    value = _expanded(located.value, (), located, missing)
    wrong = missing or list(check_values(value, located))
    if wrong:
        raise InvalidProject(wrong)
    return _project(folder.resolve(), value, located)


def _project(folder: Path, value: dict[str, Any], located: Located) -> Project:
    catalog = value.get("catalog")
    prefix = "sqlite:///"
    if catalog and catalog.startswith(prefix):
        catalog = prefix + absolute(folder, catalog.removeprefix(prefix))
    return Project(
        folder=folder,
        name=value["name"],
        checkpoint=absolute(folder, value.get("checkpoint", "checkpoint")),
        catalog=catalog,
        trigger=value.get("trigger"),
        spark=_options(value.get("spark")),
        streams=_relations(folder, value["streams"]),
        tables=_relations(folder, value.get("tables")),
        sink=value.get("sink", "store"),
        routes=value.get("routes") or {},
        settings=value.get("settings") or {},
        located=located,
    )


def absolute(folder: Path, path: str) -> str:
    """A path of the project; addresses such as `s3://…` stay as they are."""
    return path if "://" in path else str(folder / path)


def _relations(folder: Path, described: dict[str, Any] | None) -> tuple[DeclaredRelation, ...]:
    return tuple(
        DeclaredRelation(
            name=name,
            format=body["format"],
            path=absolute(folder, body["path"]) if "path" in body else None,
            schema=body.get("schema"),
            options=_options(body.get("options")),
            select=tuple(body.get("select", ())),
            time=body.get("time"),
            watermark=body.get("watermark"),
        )
        for name, body in (described or {}).items()
    )


def _options(options: dict[str, Any] | None) -> dict[str, str]:
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in (options or {}).items()
    }


def _expanded(value: Any, path: tuple[Any, ...], located: Located, missing: list[Problem]) -> Any:
    """The value with `${NAME}` replaced by environment variables."""
    if isinstance(value, dict):
        return {k: _expanded(v, (*path, k), located, missing) for k, v in value.items()}
    if isinstance(value, list):
        return [_expanded(v, (*path, i), located, missing) for i, v in enumerate(value)]
    if not isinstance(value, str):
        return value

    def put(variable: re.Match[str]) -> str:
        name = variable["name"]
        if name not in os.environ:
            line, column = located.place(path)
            detail = f"the environment variable {name} is not set"
            missing.append(Problem(FILE, line, column, "PROJECT", detail))
        return os.environ.get(name, "")

    return _VARIABLE.sub(put, value)
