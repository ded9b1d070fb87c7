"""Supervision: `run` is what users hold, `stream_run` one Spark query with the thread that watches
it, `idleness` whether Spark finds no more data, `follower_run` the thread of a follower. What a step
does is the protocol's; queries that run alone are in `fallbacks/`.
"""
