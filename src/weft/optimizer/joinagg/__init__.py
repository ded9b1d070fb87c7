"""Aggregation joins: which inputs are aggregated before the join (the AggJoin paper: Tran, Lee,
Transformation of Continuous Aggregation Join Queries over Data Streams).

`rule` is what an early aggregation groups by and computes (Rule 1), `plans` are the 2^m early and
late plans. `generic_cost` prices a plan from the costs of its operators (equations 15 to 18);
`papers_costs` gives these costs for hash and nested loop joins (19 to 26), from `statistics` with
the parameters that Appendix A derives. `choice` finds the cheapest plan, `greedy` the one of a join
with many inputs. Weft itself prices plans by `weft_cost`, and `possible` says which of them can be run; `published_sets` prices the
sets that streams publish for early inputs. Nothing here knows SQL, Spark, or how a plan is run.
"""
