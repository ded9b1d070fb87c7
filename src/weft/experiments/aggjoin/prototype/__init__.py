"""The paper's prototype: Algorithm 1, one row at a time, with every operation counted.

`tables` are windows, aggregation sets and the result, `algorithm` runs a plan over them, `measuring` runs all plans at a
point. It knows nothing of figures, and weft's runtime does not use it.
"""
