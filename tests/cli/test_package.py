"""`weft package`: what the workers of a cluster get."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from tests.cli.support import weft

from weft.cli.package import write_archive, write_zip


def test_the_zip_is_weft(tmp_path: Path) -> None:
    """A Python without installed packages finds the tasks' functions in it."""
    out = tmp_path / "weft.zip"
    result = weft("package", str(out), "--json")
    assert result.exit_code == 0, result.output
    names = zipfile.ZipFile(out).namelist()
    assert len(names) == json.loads(result.stdout)["files"]
    assert "weft/runtime/windows/lanes.py" in names and "weft/py.typed" in names
    assert not [name for name in names if "__pycache__" in name]
    found = subprocess.run(
        [
            sys.executable,
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(out)!r})\n"
            "import importlib.util as u; print(u.find_spec('weft').origin)",
        ],
        capture_output=True,
        text=True,
    )
    assert found.stdout.strip() == f"{out}/weft/__init__.py"


def test_equal_files_make_equal_zips(tmp_path: Path) -> None:
    for name in ("a.zip", "b.zip"):
        write_zip(tmp_path / name)
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_packages_come_with_what_they_need_and_without_spark(tmp_path: Path) -> None:
    out = tmp_path / "packages.tar.gz"
    packed = write_archive(out, ("python-dateutil", "pyspark", "weft"))
    assert packed[0].startswith("python-dateutil ")
    with tarfile.open(out) as archive:
        names = archive.getnames()
    assert "dateutil/__init__.py" in names
    assert not [name for name in names if name.startswith(("pyspark/", "weft/", "/", ".."))]


def test_wrong_names_are_refused(tmp_path: Path) -> None:
    for arguments in (
        [str(tmp_path / "weft.tar")],
        [str(tmp_path / "none" / "weft.zip")],
        [str(tmp_path / "weft.zip"), "--dependencies", "packages.zip"],
    ):
        result = weft("package", *arguments)
        assert result.exit_code == 1 and "\n" not in result.stderr.strip()
        assert not list(tmp_path.iterdir())
