"""Section VII of the TriOps paper: figures 10 to 13, as a simulation.

`parameters` and `templates` declare what is varied; `simulation` is the one utility that all
figures use, `grid` runs it over all guesses, `summaries` are its numbers; `figures` turns points
into data, `charts` draws them, `claims` puts the paper's sentences beside our figures. `on_spark`
runs plans on Spark. All figures are entries of `paper`.
"""
