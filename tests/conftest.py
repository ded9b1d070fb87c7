"""Fixtures for all tests: one Spark session per worker, made when a test first asks for it."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.core import threadlocal
from hypothesis.database import DirectoryBasedExampleDatabase
from tests.support import scratch, seeds, shared_spark

#: Hypothesis keeps the examples that failed here, and tries them first in the next run.
FAILED_EXAMPLES = Path(__file__).parents[1] / ".hypothesis" / "examples"

TAKING_TURNS = ("tests/spark/", "tests/review/")
"""Folders whose tests on Spark take turns if a run is to be short (`seeds.SHARE`). Crashes, kills, the
command line, golden plans, clusters, object storage and Kafka are in every run."""

FAILED = pytest.StashKey[bool]()
"""Whether the run failed: then its temporary files stay."""

HOST = pytest.StashKey[subprocess.Popen[bytes]]()
"""The process that has Spark, if there are several workers."""

# No deadlines: the machine's speed is not under test. A third of the usual examples: every run has others.
settings.register_profile(
    "weft",
    deadline=None,
    max_examples=30,
    derandomize=False,
    print_blob=True,
    database=DirectoryBasedExampleDatabase(FAILED_EXAMPLES),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("weft")

# Plans must not depend on what the user measured on this machine.
os.environ["WEFT_CALIBRATION"] = os.devnull

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Choose the run's seed and its temporary folder; workers have those of the run."""
    seeds.run_seed()
    if not hasattr(config, "workerinput"):
        scratch.use(scratch.make(scratch.parent()))
        workers = config.getoption("numprocesses", None)
        if workers:
            folder = Path(tempfile.mkdtemp(prefix="spark-"))
            config.stash[HOST] = shared_spark.start_host(folder, workers)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    session.config.stash[FAILED] = exitstatus not in (
        pytest.ExitCode.OK,
        pytest.ExitCode.NO_TESTS_COLLECTED,
    )


def pytest_unconfigure(config: pytest.Config) -> None:
    if HOST in config.stash:
        shared_spark.end_host(config.stash[HOST])
    if not hasattr(config, "workerinput") and not config.stash.get(FAILED, False):
        shutil.rmtree(tempfile.gettempdir(), ignore_errors=True)


def pytest_report_header(config: pytest.Config) -> list[str]:
    return [
        f"seed: {seeds.VARIABLE}={seeds.run_seed()} repeats this run's random cases",
        f"failed examples: kept in {FAILED_EXAMPLES.relative_to(config.rootpath)}",
        f"temporary files: {tempfile.gettempdir()}",
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it again where it can be seen: the header is far above, and absent with -q."""
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        for line in pytest_report_header(terminalreporter.config):
            terminalreporter.write_line(line)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks the tests that need Spark, so that `-m "not spark"` leaves them out, and takes some of those
    that take their turns."""
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "spark" in fixtures or ("plain" in fixtures and not _is_recorded()):
            item.add_marker(pytest.mark.spark)
    later = [item for item in items if _takes_turns(item) and not seeds.has_its_turn(item.nodeid)]
    if later:
        config.hook.pytest_deselected(items=later)
        left_out = set(later)
        items[:] = [item for item in items if item not in left_out]


def _takes_turns(item: pytest.Item) -> bool:
    return item.get_closest_marker("spark") is not None and item.nodeid.startswith(TAKING_TURNS)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Hypothesis draws by the run's seed, too. `--hypothesis-seed` would be one for all tests, and
    like `@seed` make it forget the examples that failed."""
    threadlocal._hypothesis_global_random = seeds.chance_for(item.nodeid)


def _is_recorded() -> bool:
    from tests.oracle import recorded

    return recorded.available()


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    """Random choices of one test: others in every run, the same under the same seed."""
    return seeds.chance_for(request.node.nodeid)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A small local session; tests that change its settings use `spark.newSession()`.

    All workers of a run share one Spark. Spark interprets expressions in it. Tests that run them as users
    do, compiled, set `COMPILED`.
    """
    from tests.support.quick import quick_session

    os.environ["PYSPARK_PYTHON"] = sys.executable
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        session = quick_session(tmp_path_factory.mktemp("warehouse"))
        yield session
        session.stop()
    else:
        folder = Path(os.environ[shared_spark.FOLDER])
        yield shared_spark.connect(folder, int(worker.removeprefix("gw")))
