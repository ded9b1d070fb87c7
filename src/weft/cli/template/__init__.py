"""The files of the project that `weft init` writes: `weft.yaml` and queries.

Data, no code: `cli` copies them.
"""
