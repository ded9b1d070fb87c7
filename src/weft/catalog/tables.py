"""The catalog's relations as the newest version has them."""

from __future__ import annotations

import sqlalchemy as sa

metadata = sa.MetaData()

about = sa.Table(
    "weft_catalog",
    metadata,
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("revision", sa.BigInteger, nullable=False),
)
"""One row: the version of these relations, and a number that rises with every change to the
queries, so that a reader learns from one value whether it must read them again."""

streams = sa.Table(
    "streams",
    metadata,
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("schema", sa.Text, nullable=False),
)

queries = sa.Table(
    "queries",
    metadata,
    sa.Column("change", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("name", sa.String, nullable=False),
    sa.Column("sql", sa.Text, nullable=False),
    sa.Column("status", sa.String, nullable=False),
    sa.Column("detail", sa.Text, nullable=False, default=""),
    sa.Column("complete_from", sa.BigInteger, nullable=True),
    sa.Column("late", sa.BigInteger, nullable=False, default=0),
    sa.Column("registered", sa.DateTime(timezone=True), nullable=False),
    sa.Column("dropped", sa.DateTime(timezone=True), nullable=True),
    sa.Column("emit", sa.String, nullable=True),
    sa.Column("backfill", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Index("queries_by_name", "name"),
    sa.Index(
        "queries_live_name",
        "name",
        unique=True,
        sqlite_where=sa.text("dropped IS NULL"),
        postgresql_where=sa.text("dropped IS NULL"),
    ),
    sqlite_autoincrement=True,
)

statistics = sa.Table(
    "statistics",
    metadata,
    sa.Column("stream", sa.String, primary_key=True),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("updated", sa.DateTime(timezone=True), nullable=False),
)
