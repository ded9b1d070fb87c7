"""What plain Spark gave, kept from an earlier run: by Spark's version and a digest of all that went in.

A stream on plain Spark takes seconds, and gives the same again. `run` therefore looks for the output
in `recordings/spark-VERSION.jsonl`, and runs Spark only for what is not there, such as everything
under another version. With WEFT_REGENERATE=1 it runs Spark for all, and the file is written anew:

    WEFT_REGENERATE=1 pytest tests/spark/test_model_against_spark.py

The random cases are kept beside (`recordings/cases.jsonl`), as drawn then.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from . import plain_spark
from .expressions import Style
from .generate import Case
from .plain_spark import Output, SparkFailure
from .sparktypes import Type
from .values import Value
from .written import dumps, loads

FOLDER = Path(__file__).parent / "recordings"
CASES = FOLDER / "cases.jsonl"


def recording() -> bool:
    """Whether everything is to be made anew."""
    return bool(os.environ.get("WEFT_REGENERATE"))


def outputs_path() -> Path:
    """The outputs of the Spark that is installed."""
    return FOLDER / f"spark-{version('pyspark')}.jsonl"


def available() -> bool:
    """Whether there are outputs of the Spark that is installed."""
    return outputs_path().is_file() and not recording()


def keep_cases(drawn: Sequence[tuple[Case, Style]]) -> None:
    """Write random cases down, instead of those before."""
    FOLDER.mkdir(exist_ok=True)
    lines = (dumps([{**vars(case)}, style]) for case, style in drawn)
    CASES.write_text("".join(f"{line}\n" for line in lines))


def cases() -> list[tuple[Case, Style]]:
    """The random cases that were written down."""
    told = (loads(line) for line in CASES.read_text().splitlines())
    return [(Case(**case), style) for case, style in told]


class Recordings:
    """The outputs of one file, by what went in."""

    def __init__(self, path: Path) -> None:
        self._path = path
        kept = path.read_text().splitlines() if path.is_file() and not recording() else []
        self._outputs: dict[str, Any] = dict(loads(line) for line in kept)

    def find(self, key: str) -> Output | None:
        """The output; raises the failure that was recorded in its place. None: there is neither."""
        output = self._outputs.get(key)
        if isinstance(output, str):
            raise SparkFailure(output)
        if output is None:
            return None
        columns, rows, batches = output
        return Output(columns, rows, batches)

    def keep(self, key: str, output: Output | SparkFailure) -> None:
        if isinstance(output, SparkFailure):
            self._outputs[key] = f"[{output.error_class}]"
        else:
            self._outputs[key] = (output.columns, output.rows, output.batches)
        self._path.parent.mkdir(exist_ok=True)
        lines = sorted(dumps(pair) for pair in self._outputs.items())
        self._path.write_text("".join(f"{line}\n" for line in lines))


_recordings: dict[Path, Recordings] = {}


def run(
    session: Callable[[], SparkSession],
    text: str,
    schema: Mapping[str, Type],
    batches: Sequence[Sequence[Mapping[str, Value]]],
    delay_micros: int,
    *,
    directory: Path,
    ansi: bool = True,
    settings: Mapping[str, str] | None = None,
) -> Output:
    """As `plain_spark.run`, which is asked only for what is not recorded."""
    path = outputs_path()
    recordings = _recordings.setdefault(path, Recordings(path))
    key = digest(text, schema, batches, delay_micros, ansi, settings)
    output = recordings.find(key)
    if output is not None:
        return output
    try:
        output = plain_spark.run(
            *(session(), text, schema, batches, delay_micros),
            directory=directory,
            ansi=ansi,
            settings=settings,
        )
    except SparkFailure as failure:
        if recording():
            recordings.keep(key, failure)
        raise
    if recording():
        recordings.keep(key, output)
    return output


def digest(
    text: str,
    schema: Mapping[str, Type],
    batches: Sequence[Sequence[Mapping[str, Value]]],
    delay_micros: int,
    ansi: bool,
    settings: Mapping[str, str] | None,
) -> str:
    """The name of all that an output depends on, but for Spark's version."""
    rows = [list(map(dict, batch)) for batch in batches]
    whole = [text, dict(schema), rows, delay_micros, ansi, dict(settings or {})]
    return hashlib.sha256(dumps(whole).encode()).hexdigest()[:32]
