"""The part that the Placement paper left out: its plans run on Spark, one task per node.

`plans` makes a shared plan of each placement, and the fragments that all of them read; `running` runs them in lanes and
takes the time of each; `outcome` is the figure: data, chart and claims. Nothing here places anything.
"""
