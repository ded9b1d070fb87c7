"""`weft bench network`: join queries on the Fed workload, shared, alone, and in full.

`steps` times weft's whole steps on the stored stream, which arrives piece by piece, `kernel`
the kernel alone for networks of different sizes, `lookups` how long adding a query takes. `benchmark` has
the parts, each with its comparisons.
"""
