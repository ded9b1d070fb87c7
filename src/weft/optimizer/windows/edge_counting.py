"""The share of times that a set of edge classes covers, exactly, for any composite slide.

From: the TriOps paper, section III-D, which says that there is no closed form for common edges
and counts them over the composite slide. That slide is the least common multiple of all slides
and soon has thousands of digits; the count below never looks at it.

A class is a slide s, a residue r and a chance c: it covers a time t if t ≡ r modulo s and a coin
of its own shows heads (chance c; an edge class has c = 1). Over one composite slide the remainders
of t modulo coprime numbers are independent and uniform (Chinese remainder theorem), so these steps
keep the covered share:

1. A class that a sure class (c = 1) contains is dropped.
2. If s = m·u and no other class shares a factor with u, the event t ≡ r modulo u is independent of
   all else: the class becomes (m, r mod m, c / u). Classes with equal m and residue become one.
3. Sets of classes without a common factor are independent: 1 - Π (1 - share).
4. Otherwise take the base element q that most classes share and condition on the digit d = t mod q.
   All digits that are no class's residue leave the same set, the classes free of q; a digit d keeps
   those and the classes with r ≡ d, whose power of q loses one factor and whose remainder modulo
   it becomes ((r mod qᵉ) - d) / q.

All operations add or multiply numbers of [0, 1] as a + b·(1 - a), so the relative rounding error
in floats stays near 1e-15 per step; with Fractions the share is exact.
Time: for ranges that are multiples of the slide only digit 0 is hit, and step 2 leaves a handful of
primes: 900 slides up to 10,000 take 0.1 s. For two random classes per window the number of
digits multiplies; a budget of steps (classes looked at) ends it with `OutOfSteps`.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Generic, TypeVar

from weft.algebra.window import EdgeClass
from weft.optimizer.windows.coprime_base import Parts, coprime_base

Share = TypeVar("Share", float, Fraction)
_Class = tuple[int, int]


class OutOfSteps(Exception):
    """Counting would take more steps than allowed."""


class EdgeCounter(Generic[Share]):
    """Counts covered shares over the slides of one workload; remembers what it has counted.

    >>> EdgeCounter(Fraction(1), [5, 4]).covered([EdgeClass(5, 0), EdgeClass(4, 1)])
    Fraction(2, 5)
    """

    def __init__(self, one: Share, slides: Iterable[int]) -> None:
        self._one: Share = one
        self._parts: dict[int, Parts] = coprime_base(slides)
        self._parts[1] = ()
        self._known: dict[tuple[tuple[_Class, Share], ...], Share] = {}
        self._steps_left = 0

    def covered(self, classes: Iterable[EdgeClass], steps: int = 10**9) -> Share:
        """The share of all times that some class holds; `OutOfSteps` if it takes too many."""
        self._steps_left = steps
        return self._covered({(each.slide, each.residue): self._one for each in classes})

    def _covered(self, classes: dict[_Class, Share]) -> Share:
        one = self._one
        total = one - one
        while True:
            self._steps_left -= len(classes)
            if self._steps_left < 0:
                raise OutOfSteps
            everywhere = classes.pop((1, 0), None)
            if everywhere is not None:
                total += everywhere * (one - total)
                if total == one:
                    return one
            if not classes:
                return total
            _drop_contained(classes, one)
            sharing = self._sharing(classes)
            reduced = self._without_own_factors(classes, sharing)
            if reduced is None:
                break
            classes = reduced
        for component in self._components(classes):
            total += self._component(component) * (one - total)
        return total

    def _sharing(self, classes: dict[_Class, Share]) -> dict[int, int]:
        """How many classes have each base element in their slide."""
        sharing: dict[int, int] = {}
        for slide, _ in classes:
            for element, _ in self._parts[slide]:
                sharing[element] = sharing.get(element, 0) + 1
        return sharing

    def _without_own_factors(
        self, classes: dict[_Class, Share], sharing: dict[int, int]
    ) -> dict[_Class, Share] | None:
        """Step 2, or None if no class has a factor of its own."""
        if 1 not in sharing.values():
            return None
        reduced: dict[_Class, Share] = {}
        for (slide, residue), chance in classes.items():
            own = 1
            for element, power in self._parts[slide]:
                if sharing[element] == 1:
                    own *= power
            if own > 1:
                rest = slide // own
                if rest not in self._parts:
                    self._parts[rest] = tuple(
                        part for part in self._parts[slide] if sharing[part[0]] > 1
                    )
                slide, residue, chance = rest, residue % rest, chance / own
            _join(reduced, (slide, residue), chance, self._one)
        return reduced

    def _components(self, classes: dict[_Class, Share]) -> list[dict[_Class, Share]]:
        """The classes split so that those of different parts share no factor."""
        parts: list[tuple[set[int], dict[_Class, Share]]] = []
        for key, chance in classes.items():
            elements = {element for element, _ in self._parts[key[0]]}
            members = {key: chance}
            apart = []
            for part in parts:
                if elements.isdisjoint(part[0]):
                    apart.append(part)
                else:
                    elements |= part[0]
                    members |= part[1]
            apart.append((elements, members))
            parts = apart
        return [members for _, members in parts]

    def _component(self, classes: dict[_Class, Share]) -> Share:
        """Step 4."""
        if len(classes) == 1:
            (((slide, _), chance),) = classes.items()
            return chance / slide
        key = tuple(sorted(classes.items()))
        if key in self._known:
            return self._known[key]
        sharing = self._sharing(classes)
        element = max(sharing, key=lambda each: (sharing[each], -each))
        free: dict[_Class, Share] = {}
        by_digit: dict[int, list[tuple[_Class, Share]]] = {}
        for edge_class, chance in classes.items():
            if edge_class[0] % element:
                free[edge_class] = chance
            else:
                digit = edge_class[1] % element
                by_digit.setdefault(digit, []).append((edge_class, chance))
        share = self._one - self._one
        others = element - len(by_digit)
        if others and free:
            share += self._covered(dict(free)) * others
        for digit, hit in by_digit.items():
            conditioned = dict(free)
            for edge_class, chance in hit:
                _join(conditioned, self._next_digit(edge_class, element, digit), chance, self._one)
            share += self._covered(conditioned)
        share /= element
        self._known[key] = share
        return share

    def _next_digit(self, edge_class: _Class, element: int, digit: int) -> _Class:
        """The class after the digit of `element` is known to be `digit`, one of its own."""
        slide, residue = edge_class
        rest = slide // element
        power = dict(self._parts[slide])[element] // element
        if rest not in self._parts:
            self._parts[rest] = tuple(
                (each, power if each == element else old)
                for each, old in self._parts[slide]
                if each != element or power > 1
            )
        other = rest // power
        of_other = residue % other
        if power == 1 or residue == 0:
            return rest, of_other if power == 1 else 0
        of_power = (residue % (power * element) - digit) // element
        step = (of_power - of_other) * pow(other, -1, power) % power
        return rest, of_other + other * step


def _drop_contained(classes: dict[_Class, Share], one: Share) -> None:
    """Step 1, in place."""
    sure = sorted(key for key, chance in classes.items() if chance == one)
    for slide, residue in sure:
        if (slide, residue) in classes:
            contained = [
                key
                for key in classes
                if key[0] % slide == 0 and key[1] % slide == residue and key != (slide, residue)
            ]
            for key in contained:
                del classes[key]


def _join(classes: dict[_Class, Share], key: _Class, chance: Share, one: Share) -> None:
    """Add a class; two with the same times cover as 1 - (1 - a)(1 - b)."""
    old = classes.get(key)
    classes[key] = chance if old is None else old + chance * (one - old)
