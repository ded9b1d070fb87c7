"""What a step of aggregation joins consumes of the network: files with matches, and how far these go."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from weft.algebra.joinagg.matches import PUBLISHED_MATCHES
from weft.runtime.checkpoint.commits import Commit, Entry, Intent
from weft.runtime.checkpoint.log import StreamLog
from weft.runtime.joinagg.matches.held import NETWORK, consumed_matches
from weft.runtime.joinagg.matches.passed import NetworkPassed
from weft.runtime.protocol.follower import consumed


def of_streams(intent: Intent) -> Intent:
    """An intent without the network: what a step consumes of streams."""
    return replace(intent, inputs={n: at for n, at in intent.inputs.items() if n != NETWORK})


def of_network(
    intent: Intent, last: Commit | None, log: Callable[[str], StreamLog], added: Collection[str]
) -> tuple[tuple[Entry, ...], NetworkPassed]:
    """The matches that a step consumes, and how far the network has come after them. `added` are those that were not read in the step before."""
    passed = NetworkPassed.decoded(last.engine.get(NETWORK) if last else None).resumed(added)
    files: list[Entry] = []
    network = {name: at for name, at in intent.inputs.items() if name == NETWORK}
    for step in consumed(replace(intent, inputs=network), last, log, PUBLISHED_MATCHES):
        passed = passed.after(step.step)
        files += consumed_matches(step.step["published"])
    return tuple(files), passed
