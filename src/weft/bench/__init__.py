"""Benchmarks, run by ``weft bench NAME``: one module or room per benchmark.

``windows``, ``mixed`` (with ``scale/``), ``rows``, ``network/`` and ``aggjoin/`` measure weft beside its peers; ``plan`` (with
``plan_chart``) and ``quality`` the window optimizers; ``state/`` what a step costs
beside much open state; ``bounded``, ``calibrate``, ``statistics`` and ``first_result`` single parts; ``soak/`` a long run.

A benchmark measures weft, its peers and the floor in one run, on the same files and the same
micro-batches, and reports ratios: ratios travel between machines, rates do not. How a rate is taken
and shown is in ``measuring/``, the systems to compare with are in ``peers/``. The streams and
queries that are measured belong to ``weft.workloads``, experiments of papers to
``weft.experiments``.
"""
