"""Servers that tests start on this machine, and wait for."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import time
from pathlib import Path

PATIENCE = 120
_LISTENS = "0A"
_LOOPBACK = ("0100007F:", "0000000000000000FFFF00000100007F:", f"{1 << 24:032X}:")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def await_port(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Wait until a server takes connections."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        assert server.poll() is None, log.read_text()[-2000:]
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError(f"the server did not start: {log.read_text()[-2000:]}")


def end(server: subprocess.Popen[bytes]) -> None:
    """End a server that a test started."""
    server.terminate()
    try:
        server.wait(30)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def heard_from_outside(server: subprocess.Popen[bytes]) -> list[str]:
    """The addresses at which a process can be reached from other machines, as Linux writes them."""
    folder = Path(f"/proc/{server.pid}")
    links = [os.readlink(path) for path in (folder / "fd").iterdir() if path.is_symlink()]
    own = {match[1] for link in links if (match := re.fullmatch(r"socket:\[(\d+)\]", link))}
    outside = []
    for table in ("tcp", "tcp6"):
        for line in (folder / "net" / table).read_text().splitlines()[1:]:
            _, local, _, state, *others = line.split()
            loopback = local.startswith(_LOOPBACK)
            if state == _LISTENS and others[5] in own and not loopback:
                outside.append(local)
    return outside
