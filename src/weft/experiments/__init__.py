"""Experiments of the papers, as `weft reproduce` runs them: one package for each paper, `triops/`,
`memory/`, `argus/`, `aggjoin/` and `placement/`.

A package declares its parameters, measures, and draws; `reproduction` holds what all of them have
in common, `papers` lists them. What only experiments use lives here. Measuring weft itself lives in
`weft.bench`.
"""
