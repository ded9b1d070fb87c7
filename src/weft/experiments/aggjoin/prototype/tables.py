"""The tables of Algorithm 1: windows, aggregation sets and the result, as chained hash tables.

They are what the paper's cost functions are about (Appendix A): windows and aggregation sets are
hashed by the join attribute, the result by the grouping attribute of the first input, and what is
in a bucket is looked at one by one. Every table counts what it looks at.

A nested loop join has windows of one bucket, and looks at all buckets of an aggregation set; sets and
the result are hashed all the same.

A group whose count falls to 0 is removed, which Definition 4 forgets.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache

Key = tuple[str, ...]
"""The grouping attributes of all inputs."""


@dataclass(slots=True)
class Entry:
    """A row of a window, or a group of an aggregation set with its COUNT(*) and SUM. Those who find
    matches need not know which."""

    join: str
    group: str
    count: int
    total: int


@dataclass(slots=True)
class ResultGroup:
    """A group of the result: its joined rows, and the sum of every input's attribute over them."""

    key: Key
    count: int
    totals: list[int]


@cache
def hash_of(text: str) -> int:
    """The hash of a string as Java defines it, since the paper's prototype is in Java; Python's own
    differs from process to process.

    >>> hash_of("j7")
    3341
    """
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value


class Window:
    """The rows of an input, by join attribute, in the order in which they came."""

    def __init__(self, buckets: int) -> None:
        self.rows: deque[Entry] = deque()
        self.updates = 0
        self.probes = 0
        self._buckets: list[deque[Entry]] = [deque() for _ in range(buckets)]

    def add(self, row: Entry) -> None:
        self.updates += 1
        self.rows.append(row)
        self._bucket(row.join).append(row)

    def remove_oldest(self) -> Entry:
        """What came first leaves first, in its bucket, too."""
        self.updates += 1
        row = self.rows.popleft()
        self._bucket(row.join).popleft()
        return row

    def matches(self, join: str) -> list[Entry]:
        bucket = self._bucket(join)
        self.probes += len(bucket)
        return [row for row in bucket if row.join == join]

    def _bucket(self, join: str) -> deque[Entry]:
        return self._buckets[hash_of(join) % len(self._buckets)]


class AggregationSet:
    """The groups of an input by its grouping and its join attribute (Definition 3)."""

    def __init__(self, buckets: int, rows: Iterable[Entry], *, probe_all: bool) -> None:
        self.probes = 0
        self.looks = 0
        """Groups that were looked at to update one."""
        self._probe_all = probe_all
        self._size = 0
        self._buckets: list[list[Entry]] = [[] for _ in range(buckets)]
        for row in rows:
            self.update(row, 1)
        self.looks = 0

    def update(self, row: Entry, sign: int) -> None:
        """The AS update: a row comes (1) or goes (-1)."""
        bucket = self._bucket(row.join)
        for place, entry in enumerate(bucket):
            if entry.group == row.group and entry.join == row.join:
                self.looks += place + 1
                entry.count += sign
                entry.total += sign * row.total
                if not entry.count:
                    del bucket[place]
                    self._size -= 1
                return
        self.looks += len(bucket)
        self._size += 1
        bucket.append(Entry(row.join, row.group, sign, sign * row.total))

    def matches(self, join: str) -> list[Entry]:
        if self._probe_all:
            self.probes += self._size
            return [entry for bucket in self._buckets for entry in bucket if entry.join == join]
        bucket = self._bucket(join)
        self.probes += len(bucket)
        return [entry for entry in bucket if entry.join == join]

    def __len__(self) -> int:
        return self._size

    def _bucket(self, join: str) -> list[Entry]:
        return self._buckets[hash_of(join) % len(self._buckets)]


class ResultSet:
    """The output of the query: an aggregation set over joined rows."""

    def __init__(self, buckets: int, groups: Iterable[ResultGroup] = ()) -> None:
        self.looks = 0
        self._buckets: list[list[ResultGroup]] = [[] for _ in range(buckets)]
        for group in groups:
            self._bucket(group.key).append(ResultGroup(group.key, group.count, [*group.totals]))

    def update(self, key: Key, count: int, totals: Sequence[int]) -> None:
        bucket = self._bucket(key)
        for place, group in enumerate(bucket):
            if group.key == key:
                self.looks += place + 1
                group.count += count
                for number, total in enumerate(totals):
                    group.totals[number] += total
                if not group.count:
                    del bucket[place]
                return
        self.looks += len(bucket)
        bucket.append(ResultGroup(key, count, [*totals]))

    def groups(self) -> list[ResultGroup]:
        return [group for bucket in self._buckets for group in bucket]

    def _bucket(self, key: Key) -> list[ResultGroup]:
        return self._buckets[hash_of(key[0]) % len(self._buckets)]
