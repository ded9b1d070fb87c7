"""`weft package`: what the workers of a cluster need, as files that Spark sends to them.

weft itself is a zip file for `--py-files`. Workers whose Python lacks weft's packages get these as an archive for
`--archives`: a folder to be put on their PYTHONPATH. Only what tasks import is in it.
"""

from __future__ import annotations

import sys
import tarfile
import zipfile
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath

import typer

from weft import __version__
from weft.cli.output import print_json
from weft.errors import ProjectError
from weft.runtime.tasks import NEEDED

_LEFT_OUT = ("__pycache__", "tests", "test")
_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The time of all files in the zip, so that equal files make equal zips."""


def package(
    out: Path = typer.Argument(..., metavar="OUT.zip", help="The file to write, for --py-files."),
    dependencies: Path | None = typer.Option(
        None, metavar="DEPS.tar.gz", help="Also write the packages that weft needs, for --archives."
    ),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Write what the workers of a cluster need."""
    _check_name(out, ".zip")
    if dependencies is not None:
        _check_name(dependencies, ".tar.gz")
    files = write_zip(out)
    packed = write_archive(dependencies) if dependencies is not None else []
    if as_json:
        archive = None if dependencies is None else str(dependencies)
        print_json({"zip": str(out), "files": files, "archive": archive, "packages": packed})
        return
    print(f"{out}: weft {__version__}, {files} files; spark-submit --py-files {out} …")
    if dependencies is not None:
        version = ".".join(map(str, sys.version_info[:2]))
        print(
            f"{dependencies}: {', '.join(packed)}, for Python {version} on machines like this one"
        )
        print(
            f"spark-submit --py-files {out} --archives {dependencies}#weft-packages "
            "--conf spark.executorEnv.PYTHONPATH=weft-packages …"
        )


def _check_name(path: Path, ending: str) -> None:
    if not path.name.endswith(ending):
        raise ProjectError("PROJECT", detail=f"{path} must end in {ending}: Spark goes by that")
    if not path.parent.is_dir():
        raise ProjectError("PROJECT", detail=f"{path.parent} is not a folder")


def write_zip(out: Path) -> int:
    """Write weft's own files; how many."""
    root = Path(__file__).parents[2]
    files = sorted(path for path in root.rglob("*") if path.is_file() and _wanted(path, root))
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for path in files:
            name = str(PurePosixPath("weft") / path.relative_to(root).as_posix())
            target.writestr(zipfile.ZipInfo(name, _EPOCH), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return len(files)


def _wanted(path: Path, root: Path) -> bool:
    return "__pycache__" not in path.relative_to(root).parts


def write_archive(out: Path, names: tuple[str, ...] = NEEDED) -> list[str]:
    """Write the packages that tasks import, and what these need; their names and versions."""
    found = sorted(_closure(names), key=lambda one: one.metadata["Name"])
    with tarfile.open(out, "w:gz", compresslevel=1) as target:
        for dist in found:
            for file in dist.files or ():
                path = Path(str(dist.locate_file(file)))
                inside = ".." not in file.parts and not set(file.parts) & set(_LEFT_OUT)
                if inside and path.is_file():
                    target.add(path, str(file))
    return [f"{dist.metadata['Name']} {dist.version}" for dist in found]


def _closure(names: tuple[str, ...]) -> Iterator[Distribution]:
    """Installed packages of these names, and those they require. Spark brings its own, and weft is in the zip."""
    seen = {"weft", "pyspark", "py4j"}
    waiting = [name for name in names if name not in seen]
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in seen:
            continue
        seen.add(name)
        try:
            dist = distribution(name)
        except PackageNotFoundError:
            if name in names:
                raise ProjectError("PROJECT", detail=f"package {name} is not installed") from None
            continue
        yield dist
        for requirement in dist.requires or ():
            if "extra ==" not in requirement:
                waiting.append(_name_in(requirement))


def _name_in(requirement: str) -> str:
    """The name of the package in a requirement.

    >>> _name_in("python-dateutil>=2.8.2"), _name_in("tzdata ; sys_platform == 'win32'")
    ('python-dateutil', 'tzdata')
    """
    ends = (
        place for place, sign in enumerate(requirement) if sign not in "-_." and not sign.isalnum()
    )
    return requirement[: next(ends, len(requirement))]
