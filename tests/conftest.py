"""Fixtures for all tests: one Spark session for the run, made when a test first asks for it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every run, and no deadlines: the machine's speed is not under test.
settings.register_profile(
    "weft",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("weft")

# Plans must not depend on what the user measured on this machine.
os.environ["WEFT_CALIBRATION"] = os.devnull

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that need Spark, so that `-m "not spark"` leaves them out."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small local session; tests that change its settings use `spark.newSession()`."""
    from pyspark.sql import SparkSession

    from weft.runtime.run.class_archive import java_options

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("weft tests")
        .config("spark.driver.memory", "2g")
        # Tests end before the optimizing compiler pays off: this halves a run's CPU time.
        .config("spark.driver.extraJavaOptions", f"-XX:TieredStopAtLevel=1 {java_options()}")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
