"""Money transfers and queries on them: the Fed workload of ARGUS (WORKLOADS section 7).

`stream` makes the transfers, `queries` the 768 join queries in 32 categories and as many more as one
likes, `rules` filter-and-route rules, `patterns` the smaller set of the demo. The paper's data and
queries are not published; what is known of them is in the modules' docstrings.
"""
