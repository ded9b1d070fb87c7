"""Projects and a runner."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
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
MINUTE = timedelta(minutes=1)


def quick_yaml() -> str:
    """For commands in a process of their own, whose Spark is to start soon."""
    from tests.support.quick import quick_settings

    settings = (f"  {name}: {json.dumps(value)}\n" for name, value in quick_settings().items())
    return f"{YAML}spark:\n{''.join(settings)}"


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


def put_bids(folder: Path) -> None:
    """A bid on auctions 0, 1 and 2 in each of five minutes."""
    start = datetime(2024, 1, 1, tzinfo=UTC)
    rows = [
        {"auction": auction, "price": 10 * auction + minute, "ts": start + minute * MINUTE}
        for minute in range(5)
        for auction in range(3)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "data" / "bids.parquet")


def on_terminal(*arguments: object, columns: int = 80, **environment: str) -> str:
    """What a command prints on a real terminal of so many columns."""
    primary, secondary = pty.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    settings = {"TERM": "xterm", **os.environ, **environment}
    for name in ("COLUMNS", "LINES"):
        settings.pop(name, None)
    process = subprocess.Popen(
        command(*arguments), stdout=secondary, stderr=secondary, stdin=secondary, env=settings
    )
    os.close(secondary)
    printed = b""
    while True:
        try:
            part = os.read(primary, 65536)
        except OSError:  # Linux says so when the other side is closed
            break
        if not part:
            break
        printed += part
    process.wait()
    os.close(primary)
    return printed.decode().replace("\r\n", "\n")


def command(*arguments: object) -> list[str]:
    """A command in a process of its own."""
    return [sys.executable, "-m", "weft.cli.main", *(str(argument) for argument in arguments)]
