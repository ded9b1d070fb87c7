"""The network generator's look-ups and updates on the catalog's relations.

Look-ups are range queries on an index of literals (`lookups`), what they fetch is decided by
`subsumption`. Kept in memory: what the relations say of OR predicates and predicate sets, as far as it was
written or fetched (they are named by their content, so it never changes), and how many sets are
found by each OR predicate, so that a look-up asks only for subjects that lead anywhere.

A change marks the relations as being changed, `settle` names the plan that they hold then. If a process
ends in between, or a transaction is rolled back, the relations hold no plan that anybody asks for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from weft.algebra import codec
from weft.algebra.network.plan import NetworkPlan
from weft.algebra.predicates import LiteralPredicate, OrPredicate
from weft.catalog.database import Database
from weft.catalog.network import tables
from weft.catalog.network.literals import (
    ANYTHING,
    digest,
    literal_rows,
    range_of,
    ranges_of,
    weaker_ranges,
)
from weft.catalog.network.lookups import Asked, Direction, Hit, Kind, hits
from weft.catalog.network.record import node_rows, record, union_rows
from weft.catalog.network.statements import insertion
from weft.catalog.network.subsumption import implied_sets, implying_sets
from weft.optimizer.network.index import SEARCHED, Entry, Probe, fingerprint

_MANY = 500
"""How many names one statement lists at most."""


class CatalogIndex:
    """The network of a catalog's database, as `weft.optimizer.network` uses it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._plan: NetworkPlan | None = None
        """The plan that the relations hold, if this object has seen it."""
        self._held = ""
        """The digest of what this object knows the relations to hold; empty amid changes."""
        self._or_predicates: dict[str, OrPredicate] = {}
        self._members: dict[str, frozenset[str]] = {}
        self._access: dict[str, tuple[str, str]] = {}
        """The scope of every predicate set, and the OR predicate that leads to it."""
        self._led_by: Counter[str] = Counter()
        """How many predicate sets each OR predicate leads to."""
        self._subjects: dict[str, Counter[str]] = {}
        """The subjects of these OR predicates in each scope."""
        self.rows_fetched = 0
        """How many rows look-ups have fetched so far."""

    def holds(self, plan: NetworkPlan) -> bool:
        with self._database.reading() as connection:
            held = connection.execute(sa.select(tables.about.c.plan)).scalar()
            if held is None or held != fingerprint(plan):
                return False
            if held != self._held:
                self._load(connection)
                self._held = held
            self._plan = plan
            return True

    def implied(self, probes: Sequence[Probe]) -> list[tuple[str, ...]]:
        asked: dict[Kind, list[Asked]] = {"selection": [], "join": []}
        for number, (scope, predicates) in enumerate(probes):
            subjects = self._subjects.get(scope)
            if subjects:
                ranges = {ANYTHING: None}
                for predicate in predicates.predicates:
                    ranges |= dict.fromkeys(weaker_ranges(predicate))
                asked[_kind(scope)] += [
                    Asked(number, scope, wanted) for wanted in ranges if wanted.subject in subjects
                ]
        found: dict[int, list[Hit]] = {}
        with self._database.reading() as connection:
            for kind, of_kind in asked.items():
                for hit in self._hits(connection, kind, "weaker", of_kind):
                    found.setdefault(hit.probe, []).append(hit)
            self._fetch(connection, {hit.predicate_set for of in found.values() for hit in of})
        return [
            self._nodes(
                found.get(number, []),
                implied_sets(
                    predicates,
                    self._members,
                    self._or_predicates.__getitem__,
                    dict.fromkeys(hit.predicate_set for hit in found.get(number, [])),
                ),
            )
            for number, (_, predicates) in enumerate(probes)
        ]

    def implying(self, probe: Probe) -> tuple[str, ...]:
        scope, predicates = probe
        if not predicates.predicates or predicates.never or scope not in self._subjects:
            return ()
        # A set that implies the probe implies each of its predicates, so one of them leads to it.
        shortest = min(predicates.predicates, key=lambda predicate: len(predicate.literals))
        asked = [Asked(0, scope, range_of(literal)) for literal in shortest.literals]
        with self._database.reading() as connection:
            found = list(self._hits(connection, _kind(scope), "stronger", asked))
            self._fetch(connection, {hit.predicate_set for hit in found})
        names = dict.fromkeys(hit.predicate_set for hit in found)
        chosen = implying_sets(predicates, self._members, self._or_predicates.__getitem__, names)
        return self._nodes(found, chosen)

    def unions_of(self, parents: Collection[str]) -> tuple[str, ...]:
        unions = tables.unions
        statement = (
            sa.select(unions.c.node)
            .where(unions.c.parent.in_(sorted(set(parents))))
            .group_by(unions.c.node, unions.c.parents)
            .having(sa.func.count() == unions.c.parents)
        )
        with self._database.reading() as connection:
            nodes = tuple(connection.execute(statement).scalars())
        self.rows_fetched += len(nodes)
        return nodes

    def changing(self) -> AbstractContextManager[Any]:
        return self._database.writing()

    def add(self, entries: Iterable[Entry]) -> None:
        rows: dict[sa.Table, list[dict[str, Any]]] = {
            table: []
            for table in (
                tables.literals,
                tables.set_members,
                tables.predicate_sets,
                tables.selections,
                tables.joins,
                tables.unions,
            )
        }
        for entry in entries:
            if entry.node.kind == "union":
                rows[tables.unions] += union_rows(entry.node)
            if entry.node.kind not in SEARCHED:
                continue
            set_id = self._add_set(entry.probe, rows)
            table, row = node_rows(entry, set_id)
            rows[table].append(row)
        with self._database.writing() as connection:
            self._begin_change(connection)
            for table, of_table in rows.items():
                if of_table:
                    insertion(table, connection.dialect).execute_many(connection, of_table)

    def remove(self, nodes: Collection[str]) -> None:
        with self._database.writing() as connection:
            self._begin_change(connection)
            for names in _chunks(list(nodes)):
                self._remove(connection, names)

    def clear(self) -> None:
        self._forget()
        self._plan = None
        with self._database.writing() as connection:
            for table in tables.ALL:
                connection.execute(sa.delete(table))
            connection.execute(sa.insert(tables.about).values(plan=""))
        self._held = ""

    def settle(self, plan: NetworkPlan) -> None:
        held = fingerprint(plan)
        with self._database.writing() as connection:
            record(connection, self._plan, plan)
            connection.execute(sa.update(tables.about).values(plan=held))
        self._plan, self._held = plan, held

    def _begin_change(self, connection: Connection) -> None:
        if self._held:
            connection.execute(sa.update(tables.about).values(plan=""))
            self._held = ""

    def _hits(
        self, connection: Connection, kind: Kind, direction: Direction, asked: Sequence[Asked]
    ) -> list[Hit]:
        found = list(hits(connection, kind, direction, asked)) if asked else []
        self.rows_fetched += len(found)
        return found

    def _nodes(self, found: Sequence[Hit], chosen: Collection[str]) -> tuple[str, ...]:
        wanted = set(chosen)
        return tuple(dict.fromkeys(hit.node for hit in found if hit.predicate_set in wanted))

    def _add_set(self, probe: Probe, rows: dict[sa.Table, list[dict[str, Any]]]) -> str:
        """A predicate set as rows, where there is no equal one yet."""
        scope, predicates = probe
        by_id = {digest(scope, predicate.sql): predicate for predicate in predicates.predicates}
        set_id = digest(scope, *sorted(by_id))
        if set_id in self._access:
            return set_id
        always = digest(scope, "")
        access = min(by_id, key=lambda name: self._led_by[name], default=always)
        self._members[set_id] = frozenset(by_id)
        for name, predicate in by_id.items():
            if name not in self._or_predicates:
                self._or_predicates[name] = predicate
                rows[tables.literals] += literal_rows(name, scope, predicate)
            rows[tables.set_members].append({"predicate_set": set_id, "or_predicate": name})
        if not by_id:
            rows[tables.literals] += literal_rows(always, scope, None)
        rows[tables.predicate_sets].append(
            {"id": set_id, "scope": scope, "size": len(by_id), "access": access}
        )
        self._access[set_id] = scope, access
        self._lead(scope, access, by_id.get(access), 1)
        return set_id

    def _lead(self, scope: str, access: str, predicate: OrPredicate | None, count: int) -> None:
        """An OR predicate leads to more predicate sets than before, or to fewer."""
        self._led_by[access] += count
        subjects = self._subjects.setdefault(scope, Counter())
        for subject in {of_literal.subject for of_literal in ranges_of(predicate)}:
            subjects[subject] += count
            if not subjects[subject]:
                del subjects[subject]

    def _remove(self, connection: Connection, names: Sequence[str]) -> None:
        connection.execute(sa.delete(tables.unions).where(tables.unions.c.node.in_(names)))
        set_ids: set[str] = set()
        for table, set_id in (
            (tables.selections, tables.selections.c.svoa_set),
            (tables.joins, tables.joins.c.jvoa_set),
        ):
            gone = table.c.node.in_(names)
            set_ids.update(connection.execute(sa.select(set_id).where(gone)).scalars())
            connection.execute(sa.delete(table).where(gone))
        sets, members, literals = tables.predicate_sets, tables.set_members, tables.literals
        used = sa.exists().where(tables.selections.c.svoa_set == sets.c.id) | sa.exists().where(
            tables.joins.c.jvoa_set == sets.c.id
        )
        candidates = sa.select(sets.c.id).where(sets.c.id.in_(set_ids), ~used)
        ids = list(connection.execute(candidates).scalars())
        if not ids:
            return
        self._fetch(connection, ids)
        or_ids: set[str] = set()
        for name in ids:
            scope, access = self._access.pop(name)
            self._lead(scope, access, self._or_predicates.get(access), -1)
            or_ids |= {access, *self._members[name]}
        connection.execute(sa.delete(members).where(members.c.predicate_set.in_(ids)))
        connection.execute(sa.delete(sets).where(sets.c.id.in_(ids)))
        kept = sa.select(members.c.or_predicate).where(members.c.or_predicate.in_(or_ids))
        unused_ors = or_ids - set(connection.execute(kept).scalars())
        connection.execute(sa.delete(literals).where(literals.c.or_predicate.in_(unused_ors)))
        for name in ids:
            del self._members[name]
        for name in unused_ors:
            self._or_predicates.pop(name, None)

    def _fetch(self, connection: Connection, set_ids: Collection[str]) -> None:
        """Read the members of predicate sets that are not in memory."""
        members, literals = tables.set_members, tables.literals
        unread = [name for name in set_ids if name not in self._members]
        for names in _chunks(unread):
            rows = connection.execute(
                sa.select(members.c.predicate_set, literals.c.or_predicate, literals.c.body)
                .select_from(
                    members.join(literals, literals.c.or_predicate == members.c.or_predicate)
                )
                .where(members.c.predicate_set.in_(names))
                .order_by(literals.c.or_predicate, literals.c.position)
            ).all()
            self.rows_fetched += len(rows)
            ors: dict[str, dict[str, None]] = {}
            sets: dict[str, set[str]] = {name: set() for name in names}
            for set_id, or_id, body in rows:
                sets[set_id].add(or_id)
                ors.setdefault(or_id, {})[body] = None
            for or_id, bodies in ors.items():
                if or_id not in self._or_predicates:
                    self._or_predicates[or_id] = OrPredicate(
                        tuple(_literal(body) for body in bodies if body)
                    )
            self._members |= {name: frozenset(or_ids) for name, or_ids in sets.items()}

    def _load(self, connection: Connection) -> None:
        """Read which OR predicates lead to which predicate sets."""
        self._forget()
        sets, literals = tables.predicate_sets, tables.literals
        for set_id, scope, access in connection.execute(
            sa.select(sets.c.id, sets.c.scope, sets.c.access)
        ):
            self._access[set_id] = scope, access
        joined = sets.join(literals, literals.c.or_predicate == sets.c.access)
        rows = connection.execute(
            sa.select(sets.c.scope, sets.c.access, literals.c.subject, sa.func.count())
            .select_from(joined)
            .group_by(sets.c.scope, sets.c.access, literals.c.subject)
        ).all()
        for scope, access, subject, count in rows:
            self._led_by[access] = count
            self._subjects.setdefault(scope, Counter())[subject] += count

    def _forget(self) -> None:
        for kept in (
            self._or_predicates,
            self._members,
            self._access,
            self._led_by,
            self._subjects,
        ):
            kept.clear()


def _kind(scope: str) -> Kind:
    return "join" if " " in scope else "selection"


def _literal(body: str) -> LiteralPredicate:
    literal = codec.loads(body)
    assert isinstance(literal, LiteralPredicate)
    return literal


def _chunks(names: Sequence[str]) -> Iterable[Sequence[str]]:
    return (names[start : start + _MANY] for start in range(0, len(names), _MANY))
