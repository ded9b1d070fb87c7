"""What all benchmarks have in common: the session, taking turns, how a rate is taken, the report.

``measure`` says how a rate is taken, ``report`` how it is shown, ``loom`` runs weft as one of the
contenders. No benchmark lives here.
"""
