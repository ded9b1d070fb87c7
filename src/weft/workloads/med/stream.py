"""A stream of hospital records, one for each stay, in the order of discharge.

A record says who was treated where, for what, and from when to when; the event time is the discharge.
Seven in ten stays are unrelated. The others are what the queries look for:

- outbreak: some cases of one contagious disease among people of one zip code within weeks;
- return: a patient comes back, often for the same disease, sometimes to another hospital;
- infection: patients who were in one hospital at the same time come back with a contagious disease.

Zip codes and hospitals have Zipf popularity; a zip code has three hospitals that most of its people
go to. In NumPy, seeded: the 835,890 records take about two seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa

from weft.workloads.columns import (
    DAY,
    Integers,
    dates,
    drawn,
    micros_of,
    strings,
    timestamps,
    zipf,
)
from weft.workloads.stored import StoredStream, store_table

STREAM = "stays"
TIME = "ts"
WATERMARK = "1 hour"
RECORDS = 835_890
HISTORY = 600_000
INCREMENT = 4_000
PER_DAY = 2_290
BASE = datetime(2003, 1, 1, tzinfo=UTC)

CONTAGIOUS = (
    "influenza", "pertussis", "measles", "mumps", "rubella", "varicella", "tuberculosis",
    "hepatitis a", "hepatitis b", "meningitis", "salmonella", "shigella", "listeria", "legionella",
    "giardia", "cholera", "typhoid", "diphtheria", "scarlet fever", "sars", "anthrax", "plague",
    "smallpox",
)  # fmt: skip
OTHER_DISEASES = 300
ZIPS = 500
FIRST_ZIP = 1001
HOSPITALS = 80
PATIENTS = 900_000
ZIP_SKEW = 0.5
DISEASE_SKEW = 0.8

_OUTBREAK_CASES = 4
_RELATED = 1 / 9
"""The share of records that belongs to returns, and to infections; to outbreaks two thirds of it."""
_LEAD_DAYS = 40


@dataclass(frozen=True)
class _Stays:
    """Stays as columns, in any order."""

    patient: Integers
    hospital: Integers
    zip: Integers
    disease: Integers
    micros: Integers
    days: Integers

    def __getitem__(self, chosen: Integers) -> _Stays:
        return _Stays(*(getattr(self, name)[chosen] for name in _COLUMNS))


_COLUMNS = ("patient", "hospital", "zip", "disease", "micros", "days")


def stays(seed: int = 1, records: int = RECORDS, per_day: int = PER_DAY) -> pa.Table:
    """The first `records` stays.

    >>> table = stays(records=1000)
    >>> table.num_rows, table.column_names[:4]
    (1000, ['record', 'patient', 'age', 'hospital'])
    """
    random = np.random.default_rng([seed, 21])
    span = records * DAY // per_day
    home = drawn(random, zipf(ZIPS, ZIP_SKEW), PATIENTS)
    wanted = round(records * _RELATED * (span + _LEAD_DAYS * DAY) / span)
    related = _joined(
        [
            _outbreaks(random, wanted * 2 // 3 // _OUTBREAK_CASES, home, span),
            _returns(random, wanted // 2, home, span),
            _infections(random, wanted // 3, home, span),
        ]
    )
    related = related[np.flatnonzero((related.micros >= 0) & (related.micros < span))]
    rest = records - len(related.micros)
    patient = random.integers(0, PATIENTS, rest)
    unrelated = _Stays(
        patient=patient,
        hospital=_hospital(random, home[patient]),
        zip=home[patient],
        disease=_any_disease(random, rest),
        micros=random.integers(0, span, rest),
        days=random.geometric(0.22, rest),
    )
    together = _joined([related, unrelated])
    return _table(together[np.argsort(together.micros, kind="stable")], seed)


def store_stays(
    folder: Path, seed: int = 1, records: int = RECORDS, per_file: int = INCREMENT
) -> StoredStream:
    """The stays as Parquet files in stream order; what does not fill a file is left out."""
    whole = records // per_file * per_file
    return store_table(
        lambda: stays(seed, records).slice(0, whole), folder, whole, per_file, f"stays seed={seed}"
    )


def _outbreaks(random: np.random.Generator, count: int, home: Integers, span: int) -> _Stays:
    """Cases of one disease in one zip code: two to six of them, over a few weeks."""
    cases = random.integers(2, 2 * _OUTBREAK_CASES - 1, count)
    outbreak = np.repeat(np.arange(count), cases)
    total = len(outbreak)
    by_zip = np.argsort(home, kind="stable")
    people = np.bincount(home, minlength=ZIPS)
    first = np.cumsum(people) - people
    zip_code = drawn(random, people / people.sum(), count)[outbreak]
    patient = by_zip[first[zip_code] + (random.random(total) * people[zip_code]).astype(np.int64)]
    begin = random.integers(-_LEAD_DAYS * DAY, span, count)[outbreak]
    return _Stays(
        patient=patient,
        hospital=_hospital(random, zip_code),
        zip=zip_code,
        disease=random.integers(0, len(CONTAGIOUS), count)[outbreak],
        micros=begin + (random.exponential(10.0, total) * DAY).astype(np.int64),
        days=random.geometric(0.2, total),
    )


def _returns(random: np.random.Generator, count: int, home: Integers, span: int) -> _Stays:
    """Two stays of one patient."""
    patient = np.repeat(random.integers(0, PATIENTS, count), 2)
    disease = np.repeat(_any_disease(random, count), 2)
    has_another = random.random(2 * count) < 0.2
    disease = np.where(has_another, _any_disease(random, 2 * count), disease)
    hospital = np.repeat(_hospital(random, home[patient[::2]]), 2)
    moved = random.random(2 * count) < 0.2
    hospital = np.where(moved, random.integers(0, HOSPITALS, 2 * count), hospital)
    days = random.geometric(0.2, 2 * count)
    begin = random.integers(-_LEAD_DAYS * DAY, span, count)
    # Some are moved to another hospital on the day on which they leave the first one.
    away = np.where(random.random(count) < 0.2, 0, random.exponential(12.0, count))
    end = begin + ((away + days[1::2]) * DAY).astype(np.int64)
    micros = np.stack([begin, end], axis=1).ravel()
    return _Stays(patient, hospital, home[patient], disease, micros, days)


def _infections(random: np.random.Generator, count: int, home: Integers, span: int) -> _Stays:
    """A patient with a contagious disease, another one of the hospital in the same days, who comes
    back with that disease."""
    first, second = random.integers(0, PATIENTS, (2, count))
    hospital = _hospital(random, home[first])
    caught = random.integers(0, len(CONTAGIOUS), count)
    begin = random.integers(-_LEAD_DAYS * DAY, span, count)
    hours = DAY // 24

    def later(low: float, high: float) -> Integers:
        moments: Integers = begin + (random.uniform(low, high, count) * 24).astype(np.int64) * hours
        return moments

    return _joined(
        [
            _Stays(first, hospital, home[first], caught, begin, 2 + random.geometric(0.2, count)),
            _Stays(
                second,
                hospital,
                home[second],
                _any_disease(random, count),
                later(0, 3),
                2 + random.geometric(0.3, count),
            ),
            _Stays(
                second, hospital, home[second], caught, later(6, 25), random.geometric(0.2, count)
            ),
        ]
    )


def _joined(parts: list[_Stays]) -> _Stays:
    return _Stays(*(np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS))


def _hospital(random: np.random.Generator, zip_code: Integers) -> Integers:
    """One of three that belong to the zip code, seldom another one."""
    near = (zip_code * 7 + random.choice(3, len(zip_code), p=(0.6, 0.3, 0.1)) * 11) % HOSPITALS
    far = random.integers(0, HOSPITALS, len(zip_code))
    return np.where(random.random(len(zip_code)) < 0.9, near, far)


def _any_disease(random: np.random.Generator, count: int) -> Integers:
    """Mostly one that is not contagious."""
    harmless = len(CONTAGIOUS) + drawn(random, zipf(OTHER_DISEASES, DISEASE_SKEW), count)
    contagious = random.integers(0, len(CONTAGIOUS), count)
    return np.where(random.random(count) < 0.02, contagious, harmless)


def _table(rows: _Stays, seed: int) -> pa.Table:
    random = np.random.default_rng([seed, 22])
    born = random.integers(0, 95, PATIENTS)
    base = micros_of(BASE)
    discharged = base // DAY + rows.micros // DAY
    names = [*CONTAGIOUS, *(f"icd {100 + number}" for number in range(OTHER_DISEASES))]
    return pa.table(
        {
            "record": pa.array(np.arange(len(rows.micros), dtype=np.int64)),
            "patient": pa.array(rows.patient),
            "age": pa.array(born[rows.patient].astype(np.int32)),
            "hospital": pa.array(rows.hospital.astype(np.int32)),
            "zip": pa.array((FIRST_ZIP + rows.zip).astype(np.int32)),
            "disease": strings(names, rows.disease),
            "admit_date": dates(discharged - rows.days),
            "discharge_date": dates(discharged),
            "ts": timestamps(base + rows.micros),
        }
    )
