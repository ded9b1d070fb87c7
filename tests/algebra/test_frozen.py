"""Values that keep their hash: equal ones hash alike, and a hash stays in its process."""

from __future__ import annotations

import pickle

from weft.algebra.condition import Bound, Values
from weft.algebra.predicates import LiteralPredicate, OrPredicate, PredicateSet
from weft.algebra.predicates.subject import subject_of
from weft.algebra.scalar import Ref


def _set(least: int) -> PredicateSet:
    literal = LiteralPredicate(subject_of(Ref("0.a", "int")), Values(((Bound(least), None),)))
    return PredicateSet((OrPredicate((literal,)),))


def test_equal_values_hash_alike_however_they_were_made() -> None:
    assert _set(3) is not _set(3)
    assert hash(_set(3)) == hash(_set(3))
    assert len({_set(3), _set(3), _set(4)}) == 2


def test_a_pickled_value_has_no_hash_of_the_process_that_wrote_it() -> None:
    value = _set(3)
    hash(value)
    value.names  # noqa: B018
    copied = pickle.loads(pickle.dumps(value))
    assert copied == value
    assert vars(copied) == {"predicates": value.predicates}
    assert vars(copied.predicates[0].literals[0]).keys() == {"subject", "values"}
