"""A PostgreSQL server for tests: Debian's, in a temporary folder, reached by a socket in it.

PostgreSQL refuses to run as root, so root starts it as another user. Where there is no server and the
tests may not install one, tests that need it are left out and say why.
"""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from tests.support import scratch

_INSTALLED = Path("/usr/lib/postgresql")
_UNPRIVILEGED = "nobody"
_SETTINGS = "-c fsync=off -c full_page_writes=off -c max_connections=30 -c listen_addresses="


@contextmanager
def running_postgres() -> Iterator[str]:
    """A server for as long as the block runs; the folder of its socket."""
    binaries = _binaries()
    folder = Path(tempfile.mkdtemp(prefix="weft-pg-", dir=scratch.parent()))
    user = _UNPRIVILEGED if os.geteuid() == 0 else getpass.getuser()
    if os.geteuid() == 0:
        os.chown(folder, pwd.getpwnam(user).pw_uid, -1)
    data = folder / "data"
    try:
        _run(user, folder, str(binaries / "initdb"), "--auth=trust", "--username=weft", "-D", data)
        control = (str(binaries / "pg_ctl"), "-D", data, "-l", folder / "log")
        _run(user, folder, *control, "-w", "-o", f"{_SETTINGS} -k {folder}", "start")
        try:
            yield str(folder)
        finally:
            _run(user, folder, *control, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_database(folder: str) -> str:
    """The URL of a new, empty database of a server."""
    name = f"weft_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(
        host=folder, user="weft", dbname="postgres", autocommit=True
    ) as connection:
        connection.execute(f'CREATE DATABASE "{name}"'.encode())
    return f"postgresql://weft@/{name}?host={folder}"


def _binaries() -> Path:
    if _newest() is None and os.geteuid() == 0 and shutil.which("apt-get"):
        command = ["apt-get", "install", "--yes", "--quiet", "postgresql"]
        subprocess.run(command, capture_output=True, timeout=600)
    newest = _newest()
    if newest is None:
        pytest.skip("there is no PostgreSQL server, and it could not be installed with apt-get")
    return newest


def _newest() -> Path | None:
    installed = sorted(_INSTALLED.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return installed[-1].parent if installed else None


def _run(user: str, folder: Path, *command: str | Path) -> None:
    other = {"user": user} if os.geteuid() == 0 else {}
    finished = subprocess.run(
        [str(part) for part in command],
        cwd=folder,
        stdout=subprocess.PIPE if "start" not in command else subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        **other,
    )
    if finished.returncode:
        raise RuntimeError(f"{command[0]} failed: {finished.stdout}")
