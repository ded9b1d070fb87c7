"""Servers that tests start on this machine, and wait for."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

PATIENCE = 120


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
