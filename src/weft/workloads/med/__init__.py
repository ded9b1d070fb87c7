"""Hospital records and queries on them: the Med workload of ARGUS (WORKLOADS section 7).

`stream` makes the records, `queries` the 565 join queries in 8 categories.
"""
