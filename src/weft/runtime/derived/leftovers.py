"""Derived streams of earlier runs that have something left to do, also if their queries are gone."""

from __future__ import annotations

from collections.abc import Callable

from weft.algebra.network.derived import is_derived
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.checkpoint.storage import Storage
from weft.runtime.protocol.publishing import PUBLISHED


def derived_logs(storage: Storage) -> list[str]:
    """The derived streams that have ever run."""
    return [name for name in storage.names("streams") if is_derived(name)]


def left_over(storage: Storage, log: Callable[[str], StreamLog], network: str) -> list[str]:
    """The derived streams that have state, or for which the network has published rows."""
    published = storage.names(log(network).folder(PUBLISHED))
    names = {name.split("-", 2)[2]: None for name in published}
    for name in derived_logs(storage):
        last = log(name).last()
        if last is not None and log(name).plan(last.plan_version).queries:
            names[name] = None
    return sorted(name for name in names if is_derived(name))
