"""`weft init`: a small project that runs at once."""

from __future__ import annotations

import os
import random
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import typer

from weft.cli.project.folder import QUERIES
from weft.cli.project.validation import FILE
from weft.errors import ProjectError

ROWS, FILES, SEED = 6000, 6, 7
_START = round(datetime(2024, 1, 1, tzinfo=UTC).timestamp() * 1e6)
_SPAN = 3_600_000_000
_DISORDER = 5_000_000
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple", "post", "phone")
_SCHEMA = pa.schema(
    [
        ("auction", pa.int64()),
        ("bidder", pa.int64()),
        ("price", pa.int64()),
        ("channel", pa.string()),
        ("ts", pa.timestamp("us", tz="UTC")),
    ]
)


def init(
    folder: Path = typer.Argument(..., metavar="DIR", help="A folder that does not exist yet."),
) -> None:
    """Write a small runnable project with made-up bids and queries."""
    queries = write_project(folder)
    print(f"{folder} holds a project: {ROWS:,} bids and {queries} query files. Try")
    for command in ("check", "explain", "run --available-now", "results"):
        word, *options = command.split()
        rest = " ".join([str(folder), *options, *(["hot"] if word == "results" else [])])
        print(f"  weft {word} {rest}")


def write_project(folder: Path) -> int:
    """Write the project; how many query files it has. Refuses a folder with files in it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        detail = f"{folder} exists already and is not empty; nothing was written"
        raise ProjectError("PROJECT", detail=detail)
    template = resources.files("weft.cli.template")
    (folder / QUERIES).mkdir(parents=True)
    (folder / FILE).write_text(template.joinpath(FILE).read_text(encoding="utf-8"))
    written = 0
    for entry in template.iterdir():
        if entry.name.endswith(".sql"):
            (folder / QUERIES / entry.name).write_text(entry.read_text(encoding="utf-8"))
            written += 1
    (folder / ".gitignore").write_text("checkpoint/\ndata/\n")
    write_bids(folder / "data" / "bids")
    return written


def write_bids(folder: Path) -> None:
    """Seeded bids as Parquet files in stream order, a few seconds out of order inside."""
    folder.mkdir(parents=True)
    choose = random.Random(SEED)
    per_file = ROWS // FILES
    for number in range(FILES):
        rows = [_bid(number * per_file + position, choose) for position in range(per_file)]
        columns = list(zip(*rows, strict=True))
        arrays = [pa.array(c, f.type) for c, f in zip(columns, _SCHEMA, strict=True)]
        path = folder / f"{number:03d}.parquet"
        pq.write_table(pa.table(arrays, schema=_SCHEMA), path)
        os.utime(path, (_START / 1e6 + number, _START / 1e6 + number))


def _bid(number: int, choose: random.Random) -> tuple[int, int, int, str, int]:
    newest = 1000 + number // 40
    auction = newest - newest % 20 if choose.random() < 0.5 else newest - choose.randrange(30)
    bidder = 1 + int(choose.paretovariate(0.7)) % 400
    price = round(10 ** choose.uniform(2, 6))
    channel = choose.choices(_CHANNELS, weights=(8, 6, 4, 3, 1, 1))[0]
    time = _START + number * _SPAN // ROWS - choose.randrange(_DISORDER)
    return auction, bidder, price, channel, time
