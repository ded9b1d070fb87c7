"""Jars that tests need, fetched once by Maven and kept in this environment."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

#: These processes are short: the optimizing compiler does not pay off.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
#: What a dependency brings along is left out.
ALONE = (
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
)
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>weft</groupId><artifactId>{name}</artifactId><version>1</version><packaging>pom</packaging>
{contents}</project>
"""
_DEPENDENCY = """<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>
<version>{version}</version>{exclusions}</dependency>
"""

Wanted = Mapping[str, Sequence[tuple[str, str, str, str]]]
"""By name of a set of jars: group, artifact, version, exclusions."""


def jars(name: str, wanted: Wanted, part: str) -> list[Path]:
    """One of the sets of jars. Maven fetches all of them once."""
    return sorted((_fetched(name, wanted) / part / "jars").glob("*.jar"))


def _fetched(name: str, wanted: Wanted) -> Path:
    digest = hashlib.sha256(repr(wanted).encode()).hexdigest()[:12]
    target = Path(sys.prefix) / "share" / "weft" / f"{name}-{digest}"
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            fetched = Path(folder) / "fetched"
            _fetch(name, wanted, fetched)
            if not target.is_dir():  # another process may have been faster
                fetched.rename(target)
    return target


def _fetch(name: str, wanted: Wanted, folder: Path) -> None:
    """Jars from Maven's own store or its registry; the test is skipped without either."""
    maven = shutil.which("mvn")
    if maven is None:
        pytest.skip(f"there is no Maven (`mvn`) to fetch the jars of {name} with")
    modules = "".join(f"<module>{part}</module>" for part in wanted)
    _write_pom(folder, "all", f"<modules>{modules}</modules>")
    for part, artifacts in wanted.items():
        dependencies = "".join(
            _DEPENDENCY.format(group=g, artifact=a, version=v, exclusions=e)
            for g, a, v, e in artifacts
        )
        _write_pom(folder / part, part, f"<dependencies>{dependencies}</dependencies>")
    command = [maven, "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime"]
    command.append("-DoutputDirectory=jars")
    for where in (["--offline"], []):
        ended = subprocess.run(
            [*command, *where],
            cwd=folder,
            env={**os.environ, "MAVEN_OPTS": JAVA_OPTIONS},
            capture_output=True,
            text=True,
            timeout=600,
        )
        if not ended.returncode:
            return
    pytest.skip(f"Maven cannot fetch the jars of {name}: {ended.stdout.strip()[:300]}")


def _write_pom(folder: Path, name: str, contents: str) -> None:
    folder.mkdir(parents=True)
    (folder / "pom.xml").write_text(_POM.format(name=name, contents=contents))
