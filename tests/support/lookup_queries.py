"""Random queries of streams and tables, as text that weft and DuckDB both read.

Streams `a` and `b`, tables `t` and `u`. Tables are joined in every way: inner, LEFT and RIGHT JOIN, one with
another, as subqueries with computed columns; and asked by IN, NOT IN, EXISTS and NOT EXISTS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from weft.algebra.query import Field, StreamSchema

COLUMNS = {
    "k": "int",
    "g": "bigint",
    "s": "string",
    "x": "double",
    "m": "decimal(9,2)",
    "d": "date",
}
STREAMS = {
    name: StreamSchema(
        name, (Field("ts", "timestamp"), *(Field(*column) for column in COLUMNS.items())), "ts", 0
    )
    for name in ("a", "b")
}
TABLES = {name: tuple(Field(*column) for column in COLUMNS.items()) for name in ("t", "u")}
_COMPARABLE = {"k": "kgxm", "g": "kgxm", "x": "kgx", "m": "kgm"}
"""With which columns a number is compared. Only Spark can compare a decimal with a double."""
_CONSTANTS = {
    "k": ("1", "2"),
    "g": ("1", "2", "9223372036854775807"),
    "s": ("'a'", "'ab'"),
    "x": ("1.5D", "0D"),
    "m": ("1.00", "0.1"),
    "d": ("DATE '2020-02-29'",),
}


@dataclass(frozen=True)
class Text:
    """A query and how many streams it reads."""

    sql: str
    streams: int

    @property
    def for_duckdb(self) -> str:
        text = self.sql.replace("LEFT SEMI", "SEMI").replace("LEFT ANTI", "ANTI")
        text = text.replace("<=>", "IS NOT DISTINCT FROM").replace("7L", "7::BIGINT")
        return text.replace("1.5D", "1.5::DOUBLE").replace("0D", "0::DOUBLE")


@dataclass
class _Query:
    """What has been written so far."""

    draw: st.DrawFn
    streams: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    from_: str = ""
    names: int = 2

    @property
    def aliases(self) -> list[str]:
        return [*self.streams, *self.tables]

    def one_of(self, values: Sequence[str]) -> str:
        return self.draw(st.sampled_from(list(values)))

    def alias(self) -> str:
        self.names += 1
        return f"r{self.names}"

    def equal(self, left: str, right: str) -> str:
        """An equality of columns of two relations; numbers of different types among them."""
        name = self.one_of(["k", "k", "k", "g", "s", "x", "m", "d"])
        if name in _COMPARABLE and self.draw(st.booleans()):
            return f"{left}.{name} = {right}.{self.one_of(_COMPARABLE[name])}"
        return f"{left}.{name} {self.one_of(['=', '=', '=', '<=>'])} {right}.{name}"

    def comparison(self, aliases: Sequence[str]) -> str:
        """A condition on some of the relations."""
        one, other = self.one_of(aliases), self.one_of(aliases)
        name = self.one_of(list(COLUMNS))
        kind = self.one_of(["constant", "null", "columns", "either"])
        if kind == "constant":
            operator = self.one_of(["=", "<", ">=", "<>"])
            return f"{one}.{name} {operator} {self.one_of(_CONSTANTS[name])}"
        if kind == "null":
            return f"{one}.{name} IS {self.one_of(['', 'NOT '])}NULL"
        if kind == "columns":
            return f"{one}.{name} {self.one_of(['<', '>=', '<>'])} {other}.{name}"
        return f"({self.comparison(aliases)} OR {self.comparison(aliases)})"

    def on(self, row: Sequence[str], table: str) -> str:
        """The condition of a join with a table: an equality first, as a rule."""
        parts = [self.equal(self.one_of(row), table)]
        if self.draw(st.integers(0, 2)) == 0:
            parts.append(self.comparison([table]))
        if self.draw(st.integers(0, 3)) == 0:
            parts.append(self.comparison([self.one_of(row), table]))
        return " AND ".join(parts)

    def start(self) -> None:
        kind = self.one_of(["one", "one", "one", "two", "self"])
        self.streams = ["r0"] if kind == "one" else ["r0", "r1"]
        if kind == "one":
            self.from_ = "a r0"
            return
        other = "b" if kind == "two" else "a"
        bound = "r1.ts >= r0.ts AND r1.ts <= r0.ts + INTERVAL 3 SECONDS"
        self.from_ = f"a r0 JOIN {other} r1 ON {self.equal('r0', 'r1')} AND {bound}"

    def add_table(self) -> None:
        alias, table = self.alias(), self.one_of(["t", "u"])
        # A table is looked up for the rows of one stream.
        row = [self.one_of(self.streams)]
        if len(self.streams) == 1:
            row = self.aliases
        kind = self.one_of(["left", "left", "left", "inner", "subquery", "pair", "semi", "right"])
        if kind == "left":
            self.from_ += f" LEFT JOIN {table} {alias} ON {self.on(row, alias)}"
        elif kind == "right" and " RIGHT" not in self.from_:
            self.from_ = f"{table} {alias} RIGHT JOIN ({self.from_}) ON {self.on(row, alias)}"
        elif kind == "inner" and len(self.streams) == 1:
            self.from_ += f" JOIN {table} {alias} ON {self.on(row, alias)}"
        elif kind == "semi":
            word = self.one_of(["SEMI", "ANTI"])
            self.from_ += f" LEFT {word} JOIN {table} {alias} ON {self.on(row, alias)}"
            return
        elif kind == "subquery":
            inner = self.comparison(["z"])
            computed = "SELECT k, coalesce(g, 7L) AS g, s, x, m, d"
            self.from_ += f" LEFT JOIN ({computed} FROM {table} z WHERE {inner}) {alias}"
            self.from_ += f" ON {self.on(row, alias)}"
        else:
            second = f"{alias}x"
            join = self.one_of(["JOIN", "LEFT JOIN"])
            on = self.equal(alias, second)
            self.from_ += f" LEFT JOIN (t {alias} {join} u {second} ON {on})"
            self.from_ += f" ON {self.on(row, alias)}"
            self.tables.append(second)
        self.tables.append(alias)

    def subquery(self) -> str:
        row, table = self.one_of(self.streams), self.one_of(["t", "u"])
        negated = self.one_of(["", "NOT "])
        inner = self.comparison(["q"]) if self.draw(st.booleans()) else "true"
        if self.draw(st.booleans()):
            name = self.one_of(["k", "g", "s", "m"])
            other = self.one_of(["k", "g", "m"]) if name != "s" else "s"
            if self.draw(st.integers(0, 2)) == 0:
                inner += f" AND {self.equal(row, 'q')}"
            return f"{row}.{name} {negated}IN (SELECT q.{other} FROM {table} q WHERE {inner})"
        on = self.on([row], "q")
        return f"{negated}EXISTS (SELECT 1 FROM {table} q WHERE {on} AND {inner})"

    def where(self) -> str:
        parts: list[str] = []
        for _ in range(self.draw(st.integers(0, 2))):
            parts.append(self.comparison(self.aliases))
        for _ in range(self.draw(st.integers(0, 2))):
            one = self.subquery()
            if self.draw(st.integers(0, 2)) == 0:
                one = f"({one} OR {self.comparison(self.aliases)})"
            parts.append(one)
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def columns(self) -> str:
        shown = [
            f"{self.one_of(self.aliases)}.{self.one_of(list(COLUMNS))} AS c{at}"
            for at in range(self.draw(st.integers(1, 4)))
        ]
        return ", ".join(shown)


@st.composite
def texts(draw: st.DrawFn) -> Text:
    """A query on one or two streams and up to three tables."""
    query = _Query(draw)
    query.start()
    for _ in range(draw(st.integers(0, 3))):
        query.add_table()
    sql = f"SELECT {query.columns()} FROM {query.from_}{query.where()}"
    return Text(sql, len(query.streams))
