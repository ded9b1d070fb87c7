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
from weft.optimizer.edges.coprime_base import Parts, coprime_base

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
        self._parts: dict[int, Parts] = {1: ()}
        self._mask: dict[int, int] = {1: 0}
        self._bit: dict[int, int] = {}
        self._reduced: dict[tuple[int, int], tuple[int, int]] = {}
        self._known: dict[tuple[tuple[_Class, Share], ...], Share] = {}
        self._steps_allowed = self._steps_left = 0
        for slide, parts in coprime_base(slides).items():
            for element, _ in parts:
                self._bit.setdefault(element, 1 << len(self._bit))
            self._add(slide, parts)

    def _add(self, slide: int, parts: Parts) -> None:
        """Remember the factors of a slide; its mask has a bit for each base element."""
        self._parts[slide] = parts
        self._mask[slide] = sum(self._bit[element] for element, _ in parts)

    @property
    def steps(self) -> int:
        """How many the last count took."""
        return self._steps_allowed - self._steps_left

    def covered(self, classes: Iterable[EdgeClass], steps: int = 10**9) -> Share:
        """The share of all times that some class holds; `OutOfSteps` if it takes too many.

        Faster if no class contains another (`edges.without_contained`).
        """
        self._steps_allowed = self._steps_left = steps
        return self._covered(
            {(edge_class.slide, edge_class.residue): self._one for edge_class in classes}, []
        )

    def _covered(self, classes: dict[_Class, Share], fresh: list[_Class]) -> Share:
        """Steps 1 to 3; only the sure classes in `fresh` can contain others."""
        one = self._one
        total = one - one
        _drop_contained(classes, fresh, one)
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
            reduced = self._without_own_factors(classes)
            if reduced is None:
                break
            classes = reduced
        for component in self._components(classes):
            total += self._component(component) * (one - total)
        return total

    def _without_own_factors(self, classes: dict[_Class, Share]) -> dict[_Class, Share] | None:
        """Step 2, or None if no class has a factor of its own."""
        once = more = 0
        for slide, _ in classes:
            mask = self._mask[slide]
            more |= once & mask
            once |= mask
        single = once & ~more
        if not single:
            return None
        reduced: dict[_Class, Share] = {}
        for (slide, residue), chance in classes.items():
            own_mask = self._mask[slide] & single
            if own_mask:
                rest, removed = self._split(slide, own_mask)
                _join(reduced, (rest, residue % rest), chance / removed, self._one)
            else:
                _join(reduced, (slide, residue), chance, self._one)
        return reduced

    def _split(self, slide: int, own_mask: int) -> tuple[int, int]:
        """A slide as (rest, the factors in the mask)."""
        key = slide, own_mask
        if key not in self._reduced:
            removed = 1
            kept = []
            for element, power in self._parts[slide]:
                if self._bit[element] & own_mask:
                    removed *= power
                else:
                    kept.append((element, power))
            if slide // removed not in self._parts:
                self._add(slide // removed, tuple(kept))
            self._reduced[key] = slide // removed, removed
        return self._reduced[key]

    def _components(self, classes: dict[_Class, Share]) -> list[dict[_Class, Share]]:
        """The classes split so that those of different parts share no factor."""
        parts: list[tuple[int, dict[_Class, Share]]] = []
        for key, chance in classes.items():
            mask = self._mask[key[0]]
            touching = [part for part in parts if part[0] & mask]
            if len(touching) == 1:
                part = touching[0]
                part[1][key] = chance
                if part[0] | mask != part[0]:
                    parts[parts.index(part)] = part[0] | mask, part[1]
                continue
            members = {key: chance}
            for part in touching:
                mask |= part[0]
                members |= part[1]
                parts.remove(part)
            parts.append((mask, members))
        return [members for _, members in parts]

    def _component(self, classes: dict[_Class, Share]) -> Share:
        """Step 4."""
        if len(classes) == 1:
            (((slide, _), chance),) = classes.items()
            return chance / slide
        key = tuple(sorted(classes.items()))
        if key in self._known:
            return self._known[key]
        element = self._commonest(classes)
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
            share += self._covered(dict(free), []) * others
        for digit, hit in by_digit.items():
            conditioned = dict(free)
            fresh = []
            for edge_class, chance in hit:
                after = self._next_digit(edge_class, element, digit)
                _join(conditioned, after, chance, self._one)
                if chance == self._one:
                    fresh.append(after)
            share += self._covered(conditioned, sorted(fresh))
        share /= element
        self._known[key] = share
        return share

    def _commonest(self, classes: dict[_Class, Share]) -> int:
        """The base element in most slides, the smallest of equals."""
        sharing: dict[int, int] = {}
        for slide, _ in classes:
            for element, _ in self._parts[slide]:
                sharing[element] = sharing.get(element, 0) + 1
        most = max(sharing.values())
        return min(element for element, count in sharing.items() if count == most)

    def _next_digit(self, edge_class: _Class, element: int, digit: int) -> _Class:
        """The class after the digit of `element` is known to be `digit`, one of its own."""
        slide, residue = edge_class
        rest = slide // element
        if residue == 0 and rest in self._parts:
            return rest, 0
        power = dict(self._parts[slide])[element] // element
        if rest not in self._parts:
            parts = tuple(
                (factor, power if factor == element else old)
                for factor, old in self._parts[slide]
                if factor != element or power > 1
            )
            self._add(rest, parts)
        other = rest // power
        of_other = residue % other
        if power == 1:
            return rest, of_other
        of_power = (residue % (power * element) - digit) // element
        step = (of_power - of_other) * pow(other, -1, power) % power
        return rest, of_other + other * step


def _drop_contained(classes: dict[_Class, Share], fresh: list[_Class], one: Share) -> None:
    """Step 1, in place, for the classes that those in `fresh`, ascending, contain.

    If there was none before, these are all: step 2 leaves no sure class smaller, and a class
    that shrinks because its own factor or a digit went lies in an old sure class only if it did so
    before.
    """
    for slide, residue in fresh:
        if classes.get((slide, residue)) != one:
            continue
        contained = [key for key in classes if key[0] % slide == 0 and key[1] % slide == residue]
        if len(contained) > 1:
            contained.remove((slide, residue))
            for key in contained:
                del classes[key]


def _join(classes: dict[_Class, Share], key: _Class, chance: Share, one: Share) -> None:
    """Add a class; two with the same times cover as 1 - (1 - a)(1 - b)."""
    old = classes.get(key)
    classes[key] = chance if old is None else old + chance * (one - old)
