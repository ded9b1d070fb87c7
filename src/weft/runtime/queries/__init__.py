"""Registered queries and what they read: streams, tables, binding, and the rules of Spark for queries
that run alone.

What users call is in `api/`; what runs the queries is in `run/` and `fallbacks/`.
"""
