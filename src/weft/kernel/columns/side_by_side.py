"""Work on two threads.

NumPy, Arrow and Spark compute without the interpreter's lock, so that a second thread uses a second core;
more of them mostly wait for the interpreter in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

THREADS = 2

_Item = TypeVar("_Item")
_Done = TypeVar("_Done")


def side_by_side(
    work: Callable[[_Item], _Done], items: Iterable[_Item], threads: int = THREADS
) -> list[_Done]:
    """What `work` gives for each of the items, in their order. More threads are for work that waits for a
    disk.

    >>> side_by_side(lambda n: n * n, [1, 2, 3])
    [1, 4, 9]
    """
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, items))
