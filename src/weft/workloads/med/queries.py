"""The 565 queries of the Med workload: 8 categories, three of them large.

The large ones, 138 queries each, look for two, three and four cases of a contagious disease in one
zip code within some days: 23 diseases, six spans. The five others are about patients who come back, who
are moved, who were infected in a hospital, about old people, and about long stays after a return.

The text is Spark SQL, and DuckDB runs it as it is, if `ts` is given to it as a timestamp without zone.
"""

from __future__ import annotations

from typing import Final

from weft.workloads.categories import Category, Conditions, JoinSql, interleaved
from weft.workloads.med.stream import CONTAGIOUS, STREAM

QUERIES: Final = 565
_SPANS = (3, 5, 7, 10, 14, 21)
_ALL = tuple(range(len(CONTAGIOUS)))
_SEVERE = "'tuberculosis', 'meningitis', 'sars', 'anthrax', 'plague', 'smallpox'"


def occurrences(ways: int, disease: int, days: int) -> list[str]:
    """So many patients of one zip code with one contagious disease within some days."""
    conditions = []
    for n in range(1, ways + 1):
        conditions.append(f"r{n}.disease = '{CONTAGIOUS[disease]}'")
        if n > 1:
            conditions += [
                f"r{n - 1}.zip = r{n}.zip",
                f"r{n - 1}.record < r{n}.record",
                f"r{n - 1}.patient <> r{n}.patient",
                *_within(1, n, days),
            ]
    return conditions


def came_back(days_away: int, span: int) -> list[str]:
    """A patient comes back for the same disease after few days."""
    return [
        "r1.patient = r2.patient",
        "r1.disease = r2.disease",
        "r1.record < r2.record",
        f"r2.admit_date <= r1.discharge_date + {days_away}",
        *_within(1, 2, span),
    ]


def moved(days_away: int, span: int) -> list[str]:
    """A patient goes to another hospital at once, and the stay there is long."""
    return [
        "r1.patient = r2.patient",
        "r1.hospital <> r2.hospital",
        "r2.admit_date BETWEEN r1.discharge_date AND r1.discharge_date + 1",
        f"r2.discharge_date > r2.admit_date + {days_away}",
        *_within(1, 2, span),
    ]


def infected(days: int, span: int) -> list[str]:
    """A patient was in the hospital together with a contagious one, and comes back with the disease."""
    return [
        f"r1.disease IN ({_SEVERE})",
        "r1.hospital = r2.hospital",
        "r2.admit_date <= r1.discharge_date",
        "r1.admit_date <= r2.discharge_date",
        "r1.patient <> r2.patient",
        *_within(1, 2, days),
        "r2.patient = r3.patient",
        "r3.disease = r1.disease",
        "r2.record < r3.record",
        *_within(2, 3, span),
    ]


def old_people(age: int, span: int) -> list[str]:
    """Three severe contagious cases among old people of one zip code."""
    conditions = []
    for n in (1, 2, 3):
        conditions += [f"r{n}.age > {age}", f"r{n}.disease IN ({_SEVERE})"]
        if n > 1:
            conditions += [
                f"r{n - 1}.zip = r{n}.zip",
                f"r{n - 1}.record < r{n}.record",
                *_within(1, n, span),
            ]
    return conditions


def longer_stays(days: int, span: int) -> list[str]:
    """A patient comes back after some days, and stays for more than as many."""
    return [
        "r1.patient = r2.patient",
        "r1.record < r2.record",
        f"r2.admit_date > r1.discharge_date + {days}",
        f"r2.discharge_date > r2.admit_date + {days}",
        *_within(1, 2, span),
    ]


def categories() -> list[Category]:
    """The eight categories.

    >>> [len(category.amounts) * len(category.spans) for category in categories()]
    [138, 138, 138, 31, 30, 30, 30, 30]
    """

    def large(ways: int) -> Category:
        return _category(
            f"occurrences_{ways}",
            ways,
            lambda disease, days: occurrences(ways, disease, days),
            _ALL,
            _SPANS,
        )

    return [
        *(large(ways) for ways in (2, 3, 4)),
        _category("came_back", 2, came_back, tuple(range(31)), (28,)),
        _category("moved", 2, moved, (2, 3, 4, 6, 8, 10), (7, 10, 14, 21, 28)),
        _category("infected", 3, infected, (3, 5, 7, 10, 14), (7, 10, 12, 14, 21, 28)),
        _category("old_people", 3, old_people, (65, 70, 75, 80, 85), _SPANS),
        _category("longer_stays", 2, longer_stays, (1, 2, 3, 5, 7), (10, 14, 18, 21, 25, 28)),
    ]


def queries(count: int = QUERIES, seed: int = 1) -> list[JoinSql]:
    """The first queries of the workload, interleaved by category.

    >>> len(queries()), len({query.sql for query in queries()})
    (565, 565)
    """
    return interleaved([category.queries(seed) for category in categories()])[:count]


def _category(
    name: str,
    ways: int,
    conditions: Conditions,
    amounts: tuple[int, ...],
    spans: tuple[int, ...],
) -> Category:
    return Category(name, ways, conditions, amounts, spans, "record", STREAM)


def _within(one: int, two: int, days: int) -> list[str]:
    """One stay ended not after the other, and not much earlier."""
    return [f"r{one}.ts <= r{two}.ts", f"r{two}.ts <= r{one}.ts + INTERVAL {days} DAYS"]
