"""Section 8 of ARGUS: figures 14 and 15, and queries run directly, on generated Fed and Med data.

`parameters` declares what is varied, `inputs` gives rows and queries, `configurations` the five
ways to make a network, `sizes` its weighted size, `execution` runs it increment by increment in the
kernel, `kept` keeps what is measured of a run. `run` does all that is asked for. `figures` turns these into data, `charts` draws them,
`claims` puts the paper's sentences beside our figures, `paper` is all of it. Nothing here starts
Spark.
"""
