"""A run gives back its checkpoint however it ends."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from weft.runtime.run.run import Run


def test_the_lease_is_given_back_once_though_the_last_look_at_a_fallback_fails() -> None:
    released: list[str] = []

    def fail() -> None:
        raise OSError("the disk is full")

    run = Run(lambda: released.append("lease"), lambda: None)
    fallback: Any = SimpleNamespace(
        poll=fail, stop=fail, quarantined=False, is_active=False, isActive=False
    )
    run._fallbacks["plain@1"] = fallback
    for end in (run.finish, run.stop):
        with pytest.raises(OSError, match="disk is full"):
            end()
    assert released == ["lease"]
    assert not run.open
