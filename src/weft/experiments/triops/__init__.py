"""Section VII of the TriOps paper: figures 10 to 13, as a simulation.

`parameters` and `templates` declare what is varied; `simulation` is the one utility that all
figures use, `grid` runs it over all guesses; `figures` turns points into data, `charts` draws them,
`claims` puts the paper's sentences beside our figures. Nothing here starts Spark: a figure that
runs plans on Spark is one more entry of `paper.FIGURES`.
"""
