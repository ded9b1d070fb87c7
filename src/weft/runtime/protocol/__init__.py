"""One protocol for every engine: storage, lease, log, steps (DESIGN section 4.2).

Here a step is admitted, intended, staged, committed and cleaned up. Nothing in this room
knows what windows, joins or sinks are.
"""
