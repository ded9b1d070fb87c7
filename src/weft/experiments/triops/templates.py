"""Guesses of the paper's template: the list of slides that queries choose from.

The TriOps paper draws slides "from a Zipf distribution over a discrete range" of "pre-specified
(i.e., template) window specifications" in [1-10K] (section VII-A, table II). It does not say which
slides the template has, how many, or which of them are the popular ones. Each template here is one
reading, each order of popularity another; a guess is one of each.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from weft.workloads.sharing import LARGEST_SLIDE, any_slides, random_slides, round_slides

Slides = list[int]


def _any(seed: int) -> Slides:
    return any_slides()


def _random(count: int, seed: int) -> Slides:
    return random_slides(count, seed)


def _people(seed: int) -> Slides:
    return round_slides()


def _primes(count: int, seed: int) -> Slides:
    primes = [n for n in range(2, LARGEST_SLIDE) if all(n % d for d in range(2, int(n**0.5) + 1))]
    return sorted(random.Random(f"primes {seed}").sample(primes, count))


def _multiples(step: int, seed: int) -> Slides:
    return list(range(step, LARGEST_SLIDE + 1, step))


def _geometric(count: int, seed: int) -> Slides:
    """Evenly spaced on a logarithmic axis; small ones coincide, so there may be fewer."""
    return sorted({round(LARGEST_SLIDE ** (k / (count - 1))) for k in range(count)})


def _round(digits: tuple[int, ...], seed: int) -> Slides:
    decades = (1, 10, 100, 1000, 10_000)
    return sorted(d * ten for d in digits for ten in decades if d * ten <= LARGEST_SLIDE)


def _powers_of_two(seed: int) -> Slides:
    return [2**k for k in range(14)]


def _divisors(number: int, seed: int) -> Slides:
    return [d for d in range(1, min(number, LARGEST_SLIDE) + 1) if number % d == 0]


def _clock(seed: int) -> Slides:
    """Seconds, minutes and hours as people choose them."""
    steps = (1, 2, 5, 10, 15, 20, 30)
    return [*steps, *(60 * minutes for minutes in steps), 3600, 7200]


TEMPLATES: dict[str, Callable[[int], Slides]] = {
    "any": _any,
    "multiples of 10": partial(_multiples, 10),
    **{f"multiples of {step}": partial(_multiples, step) for step in (100, 200, 400, 1000)},
    **{f"{count} random": partial(_random, count) for count in (10, 25, 50, 100)},
    **{f"{count} primes": partial(_primes, count) for count in (25, 100)},
    **{f"{count} geometric": partial(_geometric, count) for count in (10, 25, 50, 100)},
    "1-2-5": partial(_round, (1, 2, 5)),
    "1 to 9 of each decade": partial(_round, tuple(range(1, 10))),
    "round": _people,
    "powers of 2": _powers_of_two,
    "clock": _clock,
    **{f"divisors of {n}": partial(_divisors, n) for n in (3600, 5040, 10_000, 86_400)},
}


def _shuffled(slides: Slides, seed: int) -> Slides:
    return random.Random(f"popularity {seed}").sample(slides, len(slides))


ORDERS: dict[str, Callable[[Slides, int], Slides]] = {
    "small first": lambda slides, seed: sorted(slides),
    "large first": lambda slides, seed: sorted(slides, reverse=True),
    "shuffled": _shuffled,
}
"""Which slides are the popular ones."""


@dataclass(frozen=True, order=True)
class Guess:
    """A template and which of its slides are popular."""

    template: str
    order: str

    def __str__(self) -> str:
        return f"{self.template}, {self.order}"

    def slides(self, seed: int) -> Slides:
        """All slides of the template, the most popular first.

        >>> Guess("1-2-5", "large first").slides(1)[:4]
        [10000, 5000, 2000, 1000]
        """
        return ORDERS[self.order](TEMPLATES[self.template](seed), seed)


GUESSES = tuple(Guess(template, order) for template in TEMPLATES for order in ORDERS)

LITERAL = Guess("any", "small first")
"""Table II to the letter: a Zipf distribution over the lengths 1 to 10,000, the k-th most frequent
being k. It is the guess that is drawn, because it needs no list of ours and was not chosen by its
result."""
