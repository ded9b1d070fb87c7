"""Supervision: Spark queries, the threads that watch them, queries that run alone."""
