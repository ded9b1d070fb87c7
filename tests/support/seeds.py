"""The seed of a run of the tests: random cases are others in every run, and can be had again.

`WEFT_TEST_SEED` names the seed of a run to be repeated. Hypothesis goes by the same seed.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")
VARIABLE = "WEFT_TEST_SEED"
SHARE = "WEFT_TEST_SHARE"
"""The variable with the share of tests that are run, of those that take their turns."""


def run_seed() -> int:
    """The seed of this run, the same in all of its processes."""
    if not os.environ.get(VARIABLE):
        os.environ[VARIABLE] = str(random.SystemRandom().randrange(1 << 32))
    return int(os.environ[VARIABLE])


def some(name: str, options: Sequence[T], count: int) -> list[T]:
    """Some of a test's parameters: others in every run, for a run on Spark takes seconds."""
    return chance_for(name).sample(options, count)


def has_its_turn(name: str) -> bool:
    """Whether a test that costs seconds of Spark is run this time: all of them are, unless a run is to be
    short, and then others in every run."""
    return chance_for(f"turn {name}").random() < float(os.environ.get(SHARE) or 1)


def chance_for(name: str) -> random.Random:
    """A generator for one test: it depends on the run's seed and the test's name only."""
    return random.Random(f"{run_seed()} {name}")
