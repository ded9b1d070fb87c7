"""Slides as products of powers of pairwise coprime numbers.

Counting edges needs slides split so that independent parts show: by the Chinese remainder
theorem a time's remainders modulo coprime numbers are independent and uniform. Primes would do,
but finding them takes long for large slides; a coprime base is enough, and gcds find it.

Primes below 1000 are divided out. What is left of a slide is prime if below 1009²; if any is
larger, what is left is refined by gcds until all pieces are equal or coprime (factor refinement).
Time: O(n · 168) for n distinct slides; with k left-overs above 1009², O(k²) word operations.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd, isqrt

Parts = tuple[tuple[int, int], ...]
"""A number as (base element, power of it that divides the number), the elements ascending."""

_TRIAL_LIMIT = 1000
_TRIAL_PRIMES = tuple(
    n for n in range(2, _TRIAL_LIMIT) if all(n % d for d in range(2, isqrt(n) + 1))
)
_SURELY_PRIME = 1009**2


def coprime_base(numbers: Iterable[int]) -> dict[int, Parts]:
    """Every number as a product of powers over one coprime base.

    >>> coprime_base([12, 18])
    {12: ((2, 4), (3, 3)), 18: ((2, 2), (3, 9))}
    """
    small: dict[int, dict[int, int]] = {}
    left: dict[int, int] = {}
    for number in set(numbers):
        small[number], left[number] = _divide_out(number)
    base = _refine({rest for rest in left.values() if rest > 1})
    return {
        number: tuple(sorted((small[number] | _powers(left[number], base)).items()))
        for number in sorted(small)
    }


def _divide_out(number: int) -> tuple[dict[int, int], int]:
    powers: dict[int, int] = {}
    rest = number
    for prime in _TRIAL_PRIMES:
        if prime * prime > rest:
            break
        power = 1
        while rest % prime == 0:
            rest //= prime
            power *= prime
        if power > 1:
            powers[prime] = power
    if 1 < rest < _TRIAL_LIMIT:
        powers[rest] = rest
        rest = 1
    return powers, rest


def _refine(rests: set[int]) -> list[int]:
    if all(rest < _SURELY_PRIME for rest in rests):
        return sorted(rests)
    base: set[int] = set()
    product = 1
    for rest in sorted(rests):
        pending = [rest]
        while pending:
            piece = pending.pop()
            if piece == 1 or piece in base:
                continue
            if gcd(piece, product) == 1:
                base.add(piece)
                product *= piece
                continue
            other = next(element for element in base if gcd(element, piece) > 1)
            common = gcd(other, piece)
            base.remove(other)
            product //= other
            pending += [other // common, common, piece // common]
    return sorted(base)


def _powers(rest: int, base: list[int]) -> dict[int, int]:
    if rest == 1:
        return {}
    if rest < _SURELY_PRIME:
        return {rest: rest}
    powers: dict[int, int] = {}
    for element in base:
        power = 1
        while rest % element == 0:
            rest //= element
            power *= element
        if power > 1:
            powers[element] = power
        if rest == 1:
            break
    return powers
