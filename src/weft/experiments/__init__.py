"""Experiments of the papers, as `weft reproduce` runs them: one package for each paper.

A package declares its parameters, measures, and draws; `reproduction` holds what all of them have
in common, `papers` lists them. Measuring weft itself lives in `weft.bench`.
"""
