"""Streams of the AggJoin paper (WORKLOADS section 8), to be joined and aggregated.

`streams` makes them as tables. Which of their settings are varied is `weft.experiments.aggjoin`.
"""
