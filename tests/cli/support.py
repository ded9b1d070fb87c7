"""Projects and a runner."""

from __future__ import annotations

from pathlib import Path

from click.testing import Result
from typer.testing import CliRunner

from weft.cli.commands import app

YAML = """name: tests
streams:
  bids:
    format: parquet
    path: data
    schema: auction BIGINT, price BIGINT, ts TIMESTAMP
    time: ts
    watermark: 10 seconds
"""
PER_MINUTE = "SELECT auction, COUNT(*) AS n FROM bids GROUP BY window(ts, '1 minute'), auction"


def weft(*arguments: object) -> Result:
    """Run a command in this process; an exception that is no exit is raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def project(folder: Path, yaml: str = YAML, **queries: str) -> Path:
    """A project folder with queries by file name."""
    (folder / "queries").mkdir(parents=True, exist_ok=True)
    (folder / "data").mkdir(exist_ok=True)
    (folder / "weft.yaml").write_text(yaml)
    for name, sql in queries.items():
        (folder / "queries" / f"{name}.sql").write_text(sql)
    return folder
