"""Section 7 of the Placement paper: figures 2 and 3, tables 3 and 4, as a simulation.

`parameters` declares table 2 and what the paper leaves open; `simulation` places one configuration with every
optimizer, `grid` runs all of them on the machine's cores; `figures` turns results into data, `summaries` into
numbers, `charts` draws them, `claims` puts the paper's sentences beside our figures. All figures are entries of `paper`.
`readings` tries other readings of the paper, `scale` plans far more queries and lanes than it has, `on_lanes/` runs chosen
plans on Spark.
"""
