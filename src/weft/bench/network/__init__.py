"""`weft bench network`: join queries on the Fed workload, shared, alone, and in full.

`arrivals` lets the stored stream arrive piece by piece, `steps` times weft's whole steps on it, `kernel`
the kernel alone for networks of different sizes, `lookups` how long adding a query takes. `benchmark` has
the parts, each with its comparisons.
"""
