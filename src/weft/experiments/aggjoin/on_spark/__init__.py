"""The paper's query in whole steps of weft on Spark.

`steps` times the steps of a plan on streams that arrive; `runtime` does so at points of figures 4 and 5, with the paper's claims beside it. Nothing else of the experiments starts Spark.
"""
