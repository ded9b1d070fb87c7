"""Benchmarks, run by ``weft bench NAME``.

A benchmark measures weft, its peers and the floor in one run, on the same files and the same
micro-batches, and reports ratios: ratios travel between machines, rates do not. ``measure`` says
how a rate is taken, ``report`` how it is shown, ``peers`` are the systems to compare with.
"""
