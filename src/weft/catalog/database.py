"""The catalog's database: connections, transactions, and its failures as errors of weft.

SQLite's own handling of transactions is switched off: a transaction that writes takes the right to
write when it begins, so that it cannot fail half-way because another process was faster.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DatabaseError, SQLAlchemyError

from weft.errors import CatalogError, CheckpointError, WeftError

_PATIENCE_SECONDS: Final = 30
"""How long a writer waits for another one before it gives up."""
_WRITES: Final = "weft_writes"


class Database:
    """Transactions on one database, each thread in its own; nested ones join the outer one."""

    def __init__(self, url: str) -> None:
        self.url = url
        """As messages show it, without its password."""
        try:
            parsed = sa.make_url(url)
            self.url = parsed.render_as_string(hide_password=True)
            self._engine = _engine(parsed)
        except (SQLAlchemyError, ImportError) as error:
            raise CatalogError("BAD_CATALOG_URL", url=self.url, detail=str(error)) from error
        self._close_engine = weakref.finalize(self, self._engine.dispose)
        """Closes the connections at last with the database, if nobody has called `close`."""
        self._current = threading.local()
        self._closed = False
        # One connection serves all threads of a database in memory, so they take turns.
        self._turns: AbstractContextManager[Any] = (
            threading.RLock() if _in_memory(parsed) else nullcontext()
        )

    def close(self) -> None:
        self._closed = True
        self._close_engine()

    @property
    def in_transaction(self) -> bool:
        """Whether the calling thread is inside a transaction that writes."""
        return getattr(self._current, "connection", None) is not None

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that may write."""
        current: Connection | None = getattr(self._current, "connection", None)
        if current is not None:
            yield current
            return
        with self._turns, self._begun(writes=True) as connection:
            self._current.connection = connection
            try:
                yield connection
            finally:
                self._current.connection = None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads: it waits for nobody, and nobody waits for it."""
        current: Connection | None = getattr(self._current, "connection", None)
        if current is not None:
            yield current
            return
        with self._turns, self._begun(writes=False) as connection:
            yield connection

    @contextmanager
    def _begun(self, *, writes: bool) -> Iterator[Connection]:
        if self._closed:
            raise CatalogError("CLOSED")
        with self._clear_failures(), self._engine.connect() as connection:
            connection = connection.execution_options(**{_WRITES: writes})
            with connection.begin():
                yield connection

    @contextmanager
    def _clear_failures(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise self._failure(error) from error

    def _failure(self, error: SQLAlchemyError) -> WeftError:
        detail = str(getattr(error, "orig", None) or error)
        if type(error) is DatabaseError:  # its subclasses are no signs of a damaged file
            return CheckpointError("CATALOG_DAMAGED", url=self.url, detail=detail)
        if "unable to open" in detail or "readonly" in detail:
            detail += " (SQLite needs a folder that it can write)"
        return CatalogError("CATALOG_UNAVAILABLE", url=self.url, detail=detail)


def _in_memory(url: sa.URL) -> bool:
    return url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:")


def _engine(url: sa.URL) -> Engine:
    if url.drivername == "postgresql":  # without a driver, SQLAlchemy would take an older one
        url = url.set(drivername="postgresql+psycopg")
    if url.get_backend_name() != "sqlite":
        return sa.create_engine(url, pool_pre_ping=True)
    if _in_memory(url):
        engine = sa.create_engine(
            url, connect_args={"check_same_thread": False}, poolclass=sa.pool.StaticPool
        )
    else:
        engine = sa.create_engine(url, connect_args={"timeout": _PATIENCE_SECONDS})
    event.listen(engine, "connect", _configure)
    event.listen(engine, "begin", _begin)
    return engine


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _configure(connection: Any, _record: Any) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    try:
        if cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            _write_ahead(cursor)
        cursor.execute("PRAGMA synchronous=NORMAL")
    finally:
        cursor.close()


def _write_ahead(cursor: Any) -> None:
    """Let readers and a writer work at the same time. SQLite does not wait for another process
    that opens the file at the same moment, so this does."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            return
        except Exception as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
