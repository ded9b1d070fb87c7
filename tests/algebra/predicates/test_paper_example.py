"""The two queries of section 3: the second one's predicate sets imply the first one's."""

from __future__ import annotations

from functools import cache

from tests.support.predicates import call

from weft.algebra.predicates import PredicateSet, inferred, predicate_set
from weft.algebra.scalar import Literal, Ref, Scalar
from weft.algebra.types import SqlType

AMOUNT = "decimal(18,2)"


def column(slot: int, name: str, type_: SqlType) -> Ref:
    return Ref(f"{slot}.{name}", type_)


def constant(number: int) -> Literal:
    return Literal(number, "int")


def hop(first: int, second: int, days: int) -> list[Scalar]:
    """A transfer from the account that received another one, within some days."""
    day, later = column(first, "tran_date", "date"), column(second, "tran_date", "date")
    return [
        call("=", column(first, "rbank_aba", "string"), column(second, "sbank_aba", "string")),
        call(
            "=",
            column(first, "benef_account", "string"),
            column(second, "orig_account", "string"),
        ),
        call("<=", day, later),
        call("<=", later, call("date_add", day, constant(days), type_="date")),
    ]


@cache
def query(days: int) -> PredicateSet:
    one, two, three = (column(slot, "amount", AMOUNT) for slot in range(3))
    kinds = [call("=", column(slot, "type_code", "int"), Literal(1000, "int")) for slot in range(3)]
    half = call("*", Literal("0.5", "decimal(1,1)"), one, type_="decimal(20,3)")
    conditions = [
        *kinds,
        call(">", one, Literal("1000000.00", AMOUNT)),
        call(">", two, half),
        call("=", two, three),
        *hop(0, 1, days),
        *hop(1, 2, days),
    ]
    return inferred(predicate_set(call("and", *conditions)), 3)


def test_selections_p1_to_p3() -> None:
    selected = [query(20).within({slot}) for slot in range(3)]
    assert [predicates.sql for predicates in selected] == [
        "`0.amount` >= 1000000.01 AND `0.type_code` = 1000",
        "`1.amount` >= 500000.01 AND `1.type_code` = 1000",
        "`2.amount` >= 500000.01 AND `2.type_code` = 1000",
    ]
    first, second, third = (predicates.moved({slot: 0}) for slot, predicates in enumerate(selected))
    assert second == third
    assert first.implies(second) and not second.implies(first)
    assert first.beyond(second).sql == "`0.amount` >= 1000000.01"


def test_joins_p4_and_p5() -> None:
    selections = [query(20).within({slot}) for slot in range(3)]
    joined = query(20).within({0, 1}).beyond(selections[0] & selections[1])
    assert [predicate.sql for predicate in joined.predicates] == [
        "(`0.tran_date` - `1.tran_date` >= -20 AND `0.tran_date` - `1.tran_date` <= 0)",
        "`0.amount` - 2 * `1.amount` <= -1",
        "`0.benef_account` = `1.orig_account`",
        "`0.rbank_aba` = `1.sbank_aba`",
    ]
    further = query(20).within({1, 2}).beyond(selections[1] & selections[2])
    assert "`1.amount` - `2.amount` = 0" in further.sql and further.slots == {1, 2}


def test_the_second_query_adds_a_selection_only() -> None:
    """SharingPlan2: P8 is all that remains of Q2 on the results of Q1."""
    wide, narrow = query(20), query(10)
    assert narrow.implies(wide) and not wide.implies(narrow)
    for slots in ({0, 1}, {1, 2}):
        assert narrow.within(slots).implies(wide.within(slots))
    remaining = narrow.beyond(wide)
    assert {literal.left for literal in remaining.single} == {
        "`0.tran_date` - `1.tran_date`",
        "`1.tran_date` - `2.tran_date`",
    }
    assert len(remaining.predicates) == 2
