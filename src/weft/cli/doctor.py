"""`weft doctor`: can this machine run weft, and if not, what to do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import typer
from rich.table import Table
from rich.text import Text

from weft.cli.completing import project_folders
from weft.cli.output import console, print_json, print_lines
from weft.cli.project.folder import load
from weft.errors import WeftError
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.tasks import NEEDED

LEAST_JAVA, LEAST_PYTHON = 17, (3, 11)
_REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9_.-]+)(?:\[[^]]*\])?(?P<bounds>[^;]*)(?P<marker>;.*)?"
)
_BOUND = re.compile(r"(?P<operator>>=|<=|==|!=|<|>)\s*(?P<version>[0-9.]+)")


@dataclass(frozen=True)
class Finding:
    """One thing looked at; `advice` says what to do if it is not right."""

    name: str
    ok: bool
    found: str
    advice: str = ""


def doctor(
    folder: Path | None = typer.Argument(
        None, metavar="[DIR]", help="A project to look at, too.", autocompletion=project_folders
    ),
    spark: bool = typer.Option(True, help="Start Spark and a Python worker to see that it works."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Check Java, Python, packages and folders, and say what to do."""
    findings = list(examine(folder, spark))
    ok = all(finding.ok for finding in findings)
    if as_json:
        print_json({"ok": ok, "findings": [asdict(finding) for finding in findings]})
    elif not sys.stdout.isatty():
        print_lines(_cells(finding) for finding in findings)
        print(_verdict(ok))
    else:
        table = Table(box=None, pad_edge=False, show_header=False)
        for finding in findings:
            mark, *cells = _cells(finding)
            table.add_row(Text(mark, style="green" if finding.ok else "red"), *cells)
        console().print(table, markup=False)
        print(_verdict(ok))
    if not ok:
        raise typer.Exit(1)


def _cells(finding: Finding) -> tuple[str, str, str, str]:
    advice = "" if finding.ok else f"→ {finding.advice}"
    return "ok" if finding.ok else "wrong", finding.name, finding.found, advice


def _verdict(ok: bool) -> str:
    return "weft can run here" if ok else "weft cannot run here as it is"


def examine(folder: Path | None = None, spark: bool = True) -> Iterator[Finding]:
    """Look at everything."""
    findings = [_python(), _java(), _worker_python(), *_packages()]
    yield from findings
    yield from _project(folder) if folder is not None else [_temporary()]
    if spark and all(finding.ok for finding in findings):
        yield _spark()


def _python() -> Finding:
    running = ".".join(map(str, sys.version_info[:3]))
    wanted = ".".join(map(str, LEAST_PYTHON))
    ok = sys.version_info[:2] >= LEAST_PYTHON
    return Finding("Python", ok, running, f"make the environment with Python {wanted} or newer")


def _java() -> Finding:
    name = "Java"
    install = f"install Java {LEAST_JAVA} or newer, such as Debian's openjdk-17-jre-headless"
    home = os.environ.get("JAVA_HOME")
    if home:
        command = str(Path(home) / "bin" / "java")
        if not Path(command).exists():
            return Finding(name, False, f"JAVA_HOME={home} has no bin/java", "correct or unset it")
    else:
        command = shutil.which("java") or ""
        if not command:
            return Finding(name, False, "not found", install)
    major = java_version(command)
    if major is None:
        return Finding(name, False, f"{command} does not run", install)
    return Finding(name, major >= LEAST_JAVA, f"{major} ({command})", install)


def java_version(command: str) -> int | None:
    """The major version of a Java, None if it does not run."""
    try:
        run = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', run.stderr + run.stdout)
    return int(match[1]) if match else None


def _worker_python() -> Finding:
    """The command line sets the workers' Python itself; a program must do so, too."""
    name = "worker Python"
    chosen = os.environ.get("PYSPARK_PYTHON")
    if chosen is None:
        return Finding(name, True, f"this one, {sys.executable}")
    command = shutil.which(chosen)
    if command is None:
        advice = "unset PYSPARK_PYTHON or let it name this environment's python"
        return Finding(name, False, f"PYSPARK_PYTHON={chosen} is not there", advice)
    script = "import sys; print(*sys.version_info[:2], sep='.'); import importlib.util as u; "
    script += f"print(*(name for name in {NEEDED!r} if u.find_spec(name) is None))"
    run = subprocess.run([command, "-c", script], capture_output=True, text=True, timeout=60)
    version_there, missing, *_ = [*run.stdout.splitlines(), "", ""]
    version_there = version_there or "broken"
    running = ".".join(map(str, sys.version_info[:2]))
    advice = f"set PYSPARK_PYTHON to a Python {running} with weft's packages, or unset it"
    found = f"PYSPARK_PYTHON={chosen}, {version_there}"
    if missing:
        found += f" without {', '.join(missing.split())}"
        advice += "; on a cluster `weft package` makes what the workers need (docs/cluster.md)"
    return Finding(name, version_there == running and not missing, found, advice)


def _packages() -> Iterator[Finding]:
    try:
        requirements = requires("weft") or []
    except PackageNotFoundError:
        yield Finding("weft", False, "not installed", "run make setup, or pip install -e .")
        return
    for requirement in requirements:
        match = _REQUIREMENT.fullmatch(requirement)
        if match is None or match["marker"]:
            continue
        name, bounds = match["name"], match["bounds"].strip()
        try:
            installed = version(name)
        except PackageNotFoundError:
            yield Finding(name, False, "not installed", f"pip install '{name}{bounds}'")
            continue
        advice = f"pip install '{name}{bounds}'"
        yield Finding(name, within(installed, bounds), f"{installed} ({bounds})", advice)


def within(installed: str, bounds: str) -> bool:
    """Whether a version is in bounds.

    >>> within("2.3.1", ">=2.2,<3"), within("3.0.0", ">=2.2,<3"), within("30.1", ">=30")
    (True, False, True)
    """
    have = _numbers(installed)
    for bound in _BOUND.finditer(bounds):
        wanted = _numbers(bound["version"])
        have_padded, want_padded = _padded(have, wanted), _padded(wanted, have)
        holds = {
            ">=": have_padded >= want_padded,
            "<=": have_padded <= want_padded,
            "<": have_padded < want_padded,
            ">": have_padded > want_padded,
            "==": have_padded == want_padded,
            "!=": have_padded != want_padded,
        }
        if not holds[bound["operator"]]:
            return False
    return True


def _numbers(text: str) -> tuple[int, ...]:
    match = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def _padded(numbers: tuple[int, ...], as_long_as: tuple[int, ...]) -> tuple[int, ...]:
    return numbers + (0,) * (len(as_long_as) - len(numbers))


def _temporary() -> Finding:
    folder = Path(tempfile.gettempdir())
    return _writable("temporary folder", folder, "set TMPDIR to a folder you may write to")


def _project(folder: Path) -> Iterator[Finding]:
    try:
        project = load(folder)
    except WeftError as error:
        yield Finding("weft.yaml", False, str(error), "correct it")
        return
    yield Finding("weft.yaml", True, str(folder))
    if "://" in project.checkpoint:
        yield _remote(project.checkpoint)
        return
    existing = Path(project.checkpoint)
    while not existing.exists():
        existing = existing.parent
    yield _writable("checkpoint", existing, "give the project a checkpoint that you may write to")


def _remote(checkpoint: str) -> Finding:
    """Ask storage elsewhere whether a checkpoint is there, which needs address and credentials."""
    try:
        there = Storage(checkpoint).exists("weft.json")
    except (WeftError, OSError) as error:
        advice = "correct address and credentials (docs/object-storage.md)"
        return Finding("checkpoint", False, str(error), advice)
    return Finding("checkpoint", True, f"{checkpoint} answers{'' if there else ', it is new'}")


def _writable(name: str, folder: Path, advice: str) -> Finding:
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".weft-"):
            pass
    except OSError as error:
        return Finding(name, False, f"{folder}: {error.strerror}", advice)
    return Finding(name, True, f"{folder} is writable")


def _spark() -> Finding:
    """Start a session and send a row through a Python worker."""
    from weft.cli.project.session import session

    name = "Spark with a Python worker"
    try:
        with session("doctor", {"spark.master": "local[1]"}) as spark:
            rows = spark.range(3).mapInArrow(lambda batches: batches, "id bigint").count()
            return Finding(name, rows == 3, f"Spark {spark.version} works")
    except Exception as error:
        first = str(error).strip().split("\n", 1)[0]
        return Finding(name, False, first, "see the message above")
