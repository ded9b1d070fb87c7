"""What all benchmarks have in common: the session, taking turns, how a rate is taken, the report.

``measure`` says how a rate is taken, ``turns`` in which order contenders run, ``report`` how it is
shown; ``session`` and ``scratch`` are the Spark session and the folders of a run, ``arrivals`` lets a stored
stream arrive piece by piece, ``loom`` runs weft as one of the contenders. No benchmark lives here.
"""
