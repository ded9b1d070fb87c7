"""Seeded workloads: streams to run and queries to run on them.

``bids`` and ``events`` make rows in native Spark expressions, a pure function of the seed and the
row's number (``hashing``), so every run gives the same rows on any number of cores. ``stored``
keeps them as ordered files, one group of files per micro-batch. ``windows``, ``mixed`` and ``demo``
are lists of queries in plain Python (``named``), ``sharing`` the windows of the papers'
simulations. ``flows`` are the records of the Memory paper; ``fed`` and ``med`` are the workloads of
ARGUS: tables made in NumPy (``columns``), and join queries made from ``categories``; ``aggjoin`` are
the streams of the AggJoin paper. Measuring lives in ``weft.bench``.
"""
