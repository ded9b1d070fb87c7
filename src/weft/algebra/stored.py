"""The names under which classes of the algebra are stored in checkpoints and catalogs.

They are part of the format. A class may be renamed or moved: its line here changes on the right,
never on the left. A name that is no longer used stays free for ever. To add a class is no change
of format; to take one away, or to change the meaning of its fields, is one.
"""

from __future__ import annotations

from typing import Final

from weft.algebra import codec
from weft.algebra.aggregate import Aggregate
from weft.algebra.condition import Bound, Condition, Selection, Values
from weft.algebra.joinagg.plan import AggregationPlan
from weft.algebra.joinagg.query import (
    AggregationInput,
    AggregationJoin,
    Attribute,
    JoinedAggregate,
)
from weft.algebra.joinagg.sources import Source
from weft.algebra.joinagg.windows import InputWindow
from weft.algebra.network.derived import DerivedQuery, DerivedStream
from weft.algebra.network.lookup import Lookup
from weft.algebra.network.plan import Feed, NetworkNode, NetworkPlan
from weft.algebra.network.query import JoinInput, JoinQuery, Partner
from weft.algebra.network.sets import SetQuery
from weft.algebra.partial import Associative, Invertible, Partial
from weft.algebra.plan import Fragments, Node, Retired, SharedPlan, Sharing, WeaveGroup
from weft.algebra.predicates import Linear, LiteralPredicate, OrPredicate, PredicateSet
from weft.algebra.query import Field, OutputColumn, Query, StreamSchema
from weft.algebra.scalar import Call, Expression, Literal, Opaque, Ref
from weft.algebra.signature import Cut, Membership, Signature
from weft.algebra.window import EdgeClass, Window

NAMES: Final[tuple[tuple[str, type], ...]] = (
    # streams and queries
    ("stream", StreamSchema),
    ("field", Field),
    ("query", Query),
    ("output", OutputColumn),
    ("window", Window),
    # expressions over one row
    ("expression", Expression),
    ("ref", Ref),
    ("literal", Literal),
    ("call", Call),
    ("opaque", Opaque),
    # predicates
    ("condition", Condition),
    ("selection", Selection),
    ("values", Values),
    ("bound", Bound),
    ("signature", Signature),
    ("cut", Cut),
    ("membership", Membership),
    # aggregates
    ("aggregate", Aggregate),
    ("partial", Partial),
    ("associative", Associative),
    ("invertible", Invertible),
    # plans
    ("plan", SharedPlan),
    ("node", Node),
    ("fragments", Fragments),
    ("edges", EdgeClass),
    ("weave-group", WeaveGroup),
    ("retired", Retired),
    ("sharing", Sharing),
    # join queries and their network
    ("join-query", JoinQuery),
    ("join-input", JoinInput),
    ("lookup", Lookup),
    ("partner", Partner),
    ("linear", Linear),
    ("literal-predicate", LiteralPredicate),
    ("or-predicate", OrPredicate),
    ("predicate-set", PredicateSet),
    ("network", NetworkPlan),
    ("network-node", NetworkNode),
    ("feed", Feed),
    ("set-query", SetQuery),
    ("derived-stream", DerivedStream),
    ("derived-query", DerivedQuery),
    # aggregation joins
    ("aggregation-join", AggregationJoin),
    ("aggregation-input", AggregationInput),
    ("attribute", Attribute),
    ("joined-aggregate", JoinedAggregate),
    ("input-window", InputWindow),
    ("aggregation-plan", AggregationPlan),
    ("aggregation-source", Source),
)

for _name, _class in NAMES:
    codec.register(_name, _class)
