"""Queries of the network: one filter or join, or set operations on several. `query` is the entry.

It binds every branch with `sql.joins`; how set operations are taken apart, and which branches a query with
unions in FROM has, is in `sql.scopes.unions`.
"""
