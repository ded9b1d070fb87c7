"""What `weft demo` does: both acts in one session, in a temporary folder that is removed at the end."""

from __future__ import annotations

import tempfile
from pathlib import Path

import typer

from weft.cli.demo.patterns import patterns_act
from weft.cli.demo.windows import FILES, windows_act
from weft.cli.project.session import cores, session
from weft.workloads import demo as workload
from weft.workloads.fed import patterns as fraud


def main(
    rows: int = typer.Option(2_400_000, min=FILES, metavar="N", help="Bids to make."),
    queries: int = typer.Option(workload.COUNT, min=1, metavar="N", help="Queries to register."),
    transfers: int = typer.Option(
        fraud.RECORDS, min=fraud.FILES, metavar="N", help="Money transfers to make."
    ),
    patterns: int = typer.Option(
        fraud.COUNT, min=1, metavar="N", help="Fraud patterns to register."
    ),
) -> None:
    """Run hundreds of queries on made-up streams, beside plain Spark.

    Windowed queries on an auction stream, and fraud patterns on transfers.
    """
    settings = {
        "spark.driver.memory": "3g",
        "spark.master": f"local[{cores()}]",
        "spark.sql.session.timeZone": "UTC",
    }
    with tempfile.TemporaryDirectory(prefix="weft-demo-") as name:
        folder = Path(name)
        with session("demo", settings) as spark:
            windows_act(spark, folder / "windows", rows, queries)
            patterns_act(spark, folder / "patterns", transfers, patterns)
