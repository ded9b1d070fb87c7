"""Late inputs that the query network joins (docs/decisions/0025).

`possible` says which inputs of a plan that may be, `late_joins` which are by cost or by a setting; the network then has a query for each aggregation join, and
publishes its matches. `consuming` reads them, `passed` is how far they go and from when on they are complete, `held` what is kept of them. The rows of these inputs are kept
all the same, so a step may join them at instants instead, with the same result: in tasks, before matches are complete, and
where the network cannot. How matches are joined with other inputs is in `weft.kernel.joinagg.matched`.
"""
