"""Streams of the AggJoin paper (WORKLOADS section 8), to be joined and aggregated.

`streams` makes them as tables, `stored` as files; `queries` are the paper's query and many that differ. Which of their settings are varied is `weft.experiments.aggjoin`.
"""
