"""Random queries with EXISTS, IN, EXCEPT and the like over streams, as text that weft and DuckDB both read.

Streams `a` and `b`, table `t`. Each text says when its rows are closed: the event time of which input, and
how many seconds later no match can come any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st
from tests.support.lookup_queries import Text

_NAMES = ("k", "k", "k", "g", "s", "x", "m", "d")


@dataclass(frozen=True)
class Closing:
    """A query. Without its condition on partners it has rows at once; `negated`: it has those without a
    match, when they are closed."""

    sql: str
    where: str
    """What is to be restricted to closed rows: the SELECT before EXCEPT or INTERSECT, else all."""
    behind: str
    time: str
    seconds: int
    negated: bool

    def over_closed(self, watermark: int) -> str:
        """The query for DuckDB, over rows that are closed at a watermark in seconds."""
        text = self.where
        if self.negated:
            text += f" AND epoch({self.time}) + {self.seconds} <= {watermark}"
        return Text(text + self.behind, 2).for_duckdb


@dataclass
class _Query:
    draw: st.DrawFn
    aliases: list[str] = field(default_factory=list)
    from_: str = ""

    def one_of(self, values: Sequence[str]) -> str:
        return self.draw(st.sampled_from(list(values)))

    def maybe(self, one_in: int = 2) -> bool:
        return self.draw(st.integers(1, one_in)) == 1

    def equal(self, left: str, right: str) -> str:
        name = self.one_of(_NAMES)
        return f"{left}.{name} {self.one_of(['=', '=', '<=>'])} {right}.{name}"

    def start(self, stream: str, *, tables: bool = True) -> None:
        self.aliases, self.from_ = ["r0"], f"{stream} r0"
        kind = self.one_of(["one", "one", "one", "join", "lookup" if tables else "one"])
        if kind == "join":
            bound = "r1.ts >= r0.ts AND r1.ts <= r0.ts + INTERVAL 2 SECONDS"
            self.from_ += (
                f" JOIN {self.one_of(['a', 'b'])} r1 ON {self.equal('r0', 'r1')} AND {bound}"
            )
            self.aliases.append("r1")
        elif kind == "lookup":
            self.from_ += f" {self.one_of(['LEFT ', ''])}JOIN t ON t.k = r0.k"

    def selection(self, alias: str) -> str:
        if self.maybe():
            return "true"
        return self.one_of(
            [f"{alias}.k > 1", f"{alias}.k <> 2", f"{alias}.s IS NULL", f"{alias}.g = 1"]
        )


def _window(row: str, low: int | None, high: int | None) -> list[str]:
    """Bounds of a partner's event time around a row's."""
    bounds: list[str] = []
    for bound, operator in ((low, ">="), (high, "<=")):
        if bound is not None:
            sign = "-" if bound < 0 else "+"
            bounds.append(f"q.ts {operator} {row}.ts {sign} INTERVAL {abs(bound)} SECONDS")
    return bounds


@st.composite
def partner_texts(draw: st.DrawFn) -> Closing:
    """EXISTS, IN, LEFT SEMI JOIN, and their opposites."""
    query = _Query(draw)
    query.start(query.one_of(["a", "b"]))
    row, negated = query.one_of(query.aliases), query.maybe(3) is False
    low = draw(st.sampled_from([None, -3, -2, -1, 0]))
    high = draw(st.sampled_from([-1, 0, 0, 1, 2] if negated else [None, -1, 0, 1, 2]))
    if low is not None and high is not None:
        low = min(low, high)
    seconds = high or 0
    inner, has_table = f"{query.one_of(['a', 'b'])} q", False
    if query.maybe(4):
        inner += " JOIN b z ON z.k = q.k AND z.ts >= q.ts AND z.ts <= q.ts + INTERVAL 1 SECOND"
        seconds += 1
    elif negated and query.maybe(4):
        inner += " JOIN t u ON u.k = q.k"
        has_table = True
    conditions = [*_window(row, low, high), query.selection("q")]
    if has_table and query.maybe():
        conditions.append("u.g = 1")
    if query.maybe(4):
        conditions.append(query.selection(row))
    word = "NOT " if negated else ""
    where = [query.selection("r0")]
    kind = query.one_of(["exists", "exists", "in", "join"])
    if kind == "in":
        name = query.one_of(["k", "s", "g"])
        if query.maybe():
            conditions.append(f"q.{name} IS NOT NULL")
        inside = f"SELECT q.{name} FROM {inner} WHERE {' AND '.join(conditions)}"
        where.append(f"{row}.{name} {word}IN ({inside})")
    else:
        if not query.maybe(5) or low is None or high is None:
            conditions.append(query.equal(row, "q"))
        if kind == "exists" or len(query.aliases) > 1 or " JOIN " in inner:
            where.append(f"{word}EXISTS (SELECT 1 FROM {inner} WHERE {' AND '.join(conditions)})")
        else:
            join = "LEFT ANTI JOIN" if negated else "LEFT SEMI JOIN"
            query.from_ += f" {join} {inner} ON {' AND '.join(conditions)}"
    shown = draw(st.lists(st.sampled_from(["ts", "k", "s", "x"]), min_size=1, max_size=3))
    columns = ", ".join(
        f"{query.one_of(query.aliases)}.{name} AS c{at}" for at, name in enumerate(shown)
    )
    distinct = "DISTINCT " if query.maybe(5) else ""
    sql = f"SELECT {distinct}{columns} FROM {query.from_} WHERE {' AND '.join(where)}"
    return Closing(sql, sql, "", f"{row}.ts", seconds, negated)


@st.composite
def set_texts(draw: st.DrawFn) -> Closing:
    """EXCEPT and INTERSECT."""
    query, other = _Query(draw), _Query(draw)
    negated = query.maybe()
    query.start(query.one_of(["a", "b"]))
    other.start(query.one_of(["a", "b"]), tables=negated)
    names = draw(st.lists(st.sampled_from(["k", "s", "x", "g"]), unique=True, max_size=2))
    if negated or query.maybe() or not names:
        names.insert(draw(st.integers(0, len(names))), "ts")
    left, right = (", ".join(f"r0.{name}" for name in names) for _ in range(2))
    first = f"SELECT {left} FROM {query.from_} WHERE {query.selection('r0')}"
    word = "EXCEPT" if negated else "INTERSECT"
    behind = f" {word} SELECT {right} FROM {other.from_} WHERE {other.selection('r0')}"
    seconds = 2 if " r1" in other.from_ else 0
    return Closing(first + behind, first, behind, "r0.ts", seconds, negated)


def texts() -> st.SearchStrategy[Closing]:
    return st.one_of(partner_texts(), partner_texts(), set_texts())
