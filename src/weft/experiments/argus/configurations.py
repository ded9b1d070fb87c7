"""Table 3 of ARGUS: four ways to make a network, and match-plan without canonicalization, which stands
for NiagaraCQ."""

from __future__ import annotations

from typing import Final

from weft.optimizer.network.options import Options

ALL_SHARING: Final = "AllSharing"
NO_JOIN_SHARING: Final = "NonJoinS"
NOT_CANONICAL: Final = "NonCanon"
MATCH_PLAN: Final = "MatchPlan"
MATCH_PLAN_NOT_CANONICAL: Final = "MatchPlan_NCanon"

CONFIGURATIONS: Final[dict[str, Options]] = {
    ALL_SHARING: Options(),
    NO_JOIN_SHARING: Options(share_joins=False),
    NOT_CANONICAL: Options(canonicalize=False),
    MATCH_PLAN: Options(strategy="match-plan"),
    MATCH_PLAN_NOT_CANONICAL: Options(strategy="match-plan", canonicalize=False),
}
