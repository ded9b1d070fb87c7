"""Section VIII of the Memory paper: figures 2 to 5, on generated flows.

`parameters` declares what is varied; `measured` gives statistics of an epoch, `plans` plans and
runs a tree under each configuration and counts its hash operations; `figures` turns these into
data, `charts` draws them, `claims` puts the paper's sentences beside our figures. Nothing here
starts Spark.
"""
