"""The relations of a query network, as the newest version has them.

| relation | in ARGUS |
|---|---|
| `network_literals` | PredIndex: literals and the OR predicates that they belong to |
| `network_set_members`, `network_predicate_sets` | PSetIndex |
| `network_selections`, `network_joins`, `network_unions` | SelectionTopology, JoinTopology, UnionTopology |
| `network_columns` | SelectionColumnMap, JoinColumnMap, UnionColumnMap |
| `network_groups` | GroupExprIndex: what queries with DISTINCT group by |
| `network_nodes` | LinearNodeTable: the order of evaluation |
| `network_queries` | QueryTable: the node that feeds a query |

OR predicates and predicate sets are named by a digest of their scope and text: equal ones are one row,
whoever writes them first. A scope is the SVOA of a selection, or both JVOAs of a join.
"""

from __future__ import annotations

import sqlalchemy as sa

from weft.catalog.tables import metadata

about = sa.Table(
    "network_about",
    metadata,
    sa.Column("plan", sa.String, nullable=False),
)
"""One row: a digest of the plan that the relations hold, empty while they are being changed."""

literals = sa.Table(
    "network_literals",
    metadata,
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
"""`subject` is a digest of `left`, `body` the literal as JSON. All its values lie between `low` and
`high`, which are infinite where there is no bound."""
sa.Index(
    "network_literals_by_low",
    literals.c.scope,
    literals.c.subject,
    literals.c.low.desc(),
    literals.c.high,
)

set_members = sa.Table(
    "network_set_members",
    metadata,
    sa.Column("predicate_set", sa.String, primary_key=True),
    sa.Column("or_predicate", sa.String, primary_key=True),
    sa.Index("network_set_members_by_predicate", "or_predicate"),
)

predicate_sets = sa.Table(
    "network_predicate_sets",
    metadata,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("scope", sa.String, nullable=False),
    sa.Column("size", sa.Integer, nullable=False),
    sa.Column("access", sa.String, nullable=False),
    sa.Index("network_predicate_sets_by_access", "access"),
)
"""A set is found by one of its OR predicates, `access`: the one by which the fewest sets were found when
it was added. So a condition that all sets have in common leads to none of them."""

selections = sa.Table(
    "network_selections",
    metadata,
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

joins = sa.Table(
    "network_joins",
    metadata,
    sa.Column("node", sa.String, primary_key=True),
    sa.Column("left_parent", sa.String, nullable=False),
    sa.Column("right_parent", sa.String, nullable=False),
    sa.Column("predicates", sa.Text, nullable=False),
    sa.Column("left_jvoa", sa.String, nullable=False),
    sa.Column("right_jvoa", sa.String, nullable=False),
    sa.Column("jvoa_set", sa.String, nullable=False),
    sa.Index("network_joins_by_set", "jvoa_set"),
)

unions = sa.Table(
    "network_unions",
    metadata,
    sa.Column("node", sa.String, primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("parent", sa.String, nullable=False),
    sa.Column("parents", sa.Integer, nullable=False),
    sa.Index("network_unions_by_parent", "parent"),
)
"""A row for every parent of a union; `parents` is how many it has."""

columns = sa.Table(
    "network_columns",
    metadata,
    sa.Column("node", sa.String, primary_key=True),
    sa.Column("column", sa.String, primary_key=True),
    sa.Column("parent", sa.String, nullable=True),
    sa.Column("parent_column", sa.String, nullable=True),
)
"""From which column of which parent a node takes a column; a source has no parent."""

groups = sa.Table(
    "network_groups",
    metadata,
    sa.Column("query", sa.String, primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("expression", sa.Text, nullable=False),
)

nodes = sa.Table(
    "network_nodes",
    metadata,
    sa.Column("node", sa.String, primary_key=True),
    sa.Column("kind", sa.String, nullable=False),
    sa.Column("relations", sa.Text, nullable=False),
    sa.Column("level", sa.Integer, nullable=False),
    sa.Column("sequence", sa.Integer, nullable=False),
    sa.Index("network_nodes_in_order", "level", "sequence"),
)

queries = sa.Table(
    "network_queries",
    metadata,
    sa.Column("query", sa.String, primary_key=True),
    sa.Column("node", sa.String, nullable=False),
    sa.Column("slots", sa.String, nullable=False),
    sa.Index("network_queries_by_node", "node"),
)

ALL = (
    about,
    literals,
    set_members,
    predicate_sets,
    selections,
    joins,
    unions,
    columns,
    groups,
    nodes,
    queries,
)
