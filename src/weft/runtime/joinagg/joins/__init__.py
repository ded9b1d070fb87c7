"""The physical joins of a step: `joining` says which queries join together, and over which entries; `physical` is one such join with its inputs and
members, and runs it on the driver. In tasks they run in `weft.runtime.joinagg.lanes`.
"""
