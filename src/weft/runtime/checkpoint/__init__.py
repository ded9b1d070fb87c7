"""What is on disk: files put in place whole, the lease, the log of a stepper and its commits.

Nothing here runs a step: `protocol/` does, and knows what the files mean to a run. Spark's own checkpoint
of a stream is looked at here, and never written.
"""
