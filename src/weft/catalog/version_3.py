"""Version 3 of the catalog: the relations of a query network."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection

_metadata = sa.MetaData()

sa.Table(
    "network_about",
    _metadata,
    sa.Column("plan", sa.String, nullable=False),
)

_literals = sa.Table(
    "network_literals",
    _metadata,
    sa.Column("or_predicate", sa.String, primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("scope", sa.String, nullable=False),
    sa.Column("subject", sa.String, nullable=False),
    sa.Column("left", sa.Text, nullable=False),
    sa.Column("operator", sa.String, nullable=False),
    sa.Column("right", sa.Text, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("low", sa.Double, nullable=False),
    sa.Column("high", sa.Double, nullable=False),
    sa.Column("null_passes", sa.Integer, nullable=False),
)
sa.Index(
    "network_literals_by_low",
    _literals.c.scope,
    _literals.c.subject,
    _literals.c.low.desc(),
    _literals.c.high,
)

sa.Table(
    "network_set_members",
    _metadata,
    sa.Column("predicate_set", sa.String, primary_key=True),
    sa.Column("or_predicate", sa.String, primary_key=True),
    sa.Index("network_set_members_by_predicate", "or_predicate"),
)

sa.Table(
    "network_predicate_sets",
    _metadata,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("scope", sa.String, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("access", sa.String, nullable=False),
    sa.Index("network_predicate_sets_by_access", "access"),
)

sa.Table(
    "network_selections",
    _metadata,
    sa.Column("node", sa.String, primary_key=True),
    sa.Column("parent", sa.String, nullable=False),
    sa.Column("predicates", sa.Text, nullable=False),
    sa.Column("svoa", sa.String, nullable=False),
    sa.Column("svoa_set", sa.String, nullable=False),
    sa.Column("left_jvoa", sa.String, nullable=True),
    sa.Column("right_jvoa", sa.String, nullable=True),
    sa.Column("jvoa_predicates", sa.Text, nullable=False),
    sa.Index("network_selections_by_set", "svoa_set"),
)

sa.Table(
    "network_joins",
    _metadata,
    sa.Column("node", sa.String, primary_key=True),
    sa.Column("left_parent", sa.String, nullable=False),
    sa.Column("right_parent", sa.String, nullable=False),
    sa.Column("predicates", sa.Text, nullable=False),
    sa.Column("left_jvoa", sa.String, nullable=False),
    sa.Column("right_jvoa", sa.String, nullable=False),
    sa.Column("jvoa_set", sa.String, nullable=False),
    sa.Index("network_joins_by_set", "jvoa_set"),
)

sa.Table(
    "network_columns",
    _metadata,
    sa.Column("node", sa.String, primary_key=True),
    sa.Column("column", sa.String, primary_key=True),
    sa.Column("parent", sa.String, nullable=True),
    sa.Column("parent_column", sa.String, nullable=True),
)

sa.Table(
    "network_groups",
    _metadata,
    sa.Column("query", sa.String, primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("expression", sa.Text, nullable=False),
)

sa.Table(
    "network_nodes",
    _metadata,
    sa.Column("node", sa.String, primary_key=True),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("relations", sa.Text, nullable=False),
    sa.Column("level", sa.Integer, nullable=False),
    sa.Column("sequence", sa.Integer, nullable=False),
    sa.Index("network_nodes_in_order", "level", "sequence"),
)

sa.Table(
    "network_queries",
    _metadata,
    sa.Column("query", sa.String, primary_key=True),
    sa.Column("node", sa.String, nullable=False),
    sa.Column("slots", sa.String, nullable=False),
    sa.Index("network_queries_by_node", "node"),
)


def to_version_3(connection: Connection) -> None:
    """Version 2 has no query networks. The relations are filled from the checkpoint's plan."""
    _metadata.create_all(connection)
