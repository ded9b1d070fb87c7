"""`weft.yaml` against its schema, with objections in plain words at their place."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from importlib import resources
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from weft.cli.project.positions import Located
from weft.cli.project.problems import Problem
from weft.errors import RunError
from weft.runtime.settings import Settings, settings_of, trigger_of

FILE = "weft.yaml"
_KINDS = {dict: "a mapping", list: "a list", str: "a string", bool: "true or false"}
_TYPES = {
    "object": "a mapping",
    "array": "a list",
    "string": "a string",
    "number": "a number",
    "boolean": "true or false",
}


def validate(located: Located) -> Iterator[Problem]:
    """All that is wrong with a document."""

    def at(path: Iterable[str | int], detail: str) -> Problem:
        return _problem(located, path, detail)

    for path in located.repeated:
        yield at(path, f"'{path[-1]}' is given twice")
    for error in Draft202012Validator(_schema()).iter_errors(located.value):
        for key, detail in _explained(error):
            yield at([*error.absolute_path, *key], detail)
    value = located.value if isinstance(located.value, dict) else {}
    settings = value.get("settings")
    settings_known = [f.name for f in fields(Settings)]
    for name in settings if isinstance(settings, dict) else ():
        if name not in settings_known:
            detail = f"there is no setting '{name}'; the settings are {', '.join(settings_known)}"
            yield at(["settings", name], detail)


def check_values(value: Mapping[str, Any], located: Located) -> Iterator[Problem]:
    """What is wrong with the trigger and the settings of a document that fits the schema."""
    if "trigger" in value:
        try:
            trigger_of(None, value["trigger"])
        except RunError as error:
            detail = f"trigger cannot be {value['trigger']!r}: {error.parameters['detail']}"
            yield _problem(located, ["trigger"], detail)
    for name, setting in (value.get("settings") or {}).items():
        try:
            settings_of({name: setting})
        except RunError as error:
            position = error.parameters.get("position")
            inside = [] if position is None else [position]
            yield _problem(located, ["settings", name, *inside], error.message)


def _problem(located: Located, path: Iterable[str | int], detail: str) -> Problem:
    line, column = located.place(path)
    return Problem(FILE, line, column, "PROJECT", detail)


def _explained(error: ValidationError) -> Iterator[tuple[list[str], str]]:
    """An objection in our words, with the key it is about where that is not its path."""
    where = ".".join(str(part) for part in error.absolute_path) or FILE
    schema: Any = error.schema
    instance: Any = error.instance
    if error.validator == "additionalProperties":
        keys = list(schema["properties"])
        for name in instance:
            if name not in keys:
                yield [name], f"'{name}' is not a key here; the keys are {', '.join(keys)}"
    elif error.validator == "required":
        yield [], f"{where} needs the key '{error.message.split(chr(39))[1]}'"
    elif error.validator == "oneOf":
        yield [], str(schema["description"])
    elif error.validator == "pattern":
        detail = "use letters, digits, '_', '-' and '.', beginning with a letter or '_'"
        yield [], f"'{instance}' is not a valid name: {detail}"
    elif error.validator == "type":
        wanted: Any = error.validator_value
        names = [wanted] if isinstance(wanted, str) else wanted
        kinds = " or ".join(_TYPES[name] for name in names)
        yield [], f"{where} must be {kinds}, not {_kind(instance)}"
    elif error.validator in ("minProperties", "minItems", "minLength"):
        yield [], f"{where} is empty"
    else:
        yield [], f"{where}: {error.message}"


def _kind(value: Any) -> str:
    if value is None:
        return "nothing"
    return _KINDS.get(type(value), "a number" if isinstance(value, (int, float)) else "other")


def _schema() -> dict[str, Any]:
    text = (
        resources.files("weft.cli.project").joinpath("weft.schema.json").read_text(encoding="utf-8")
    )
    schema: dict[str, Any] = json.loads(text)
    return schema
