"""Aggregation joins: an engine (`engine`) that follows all streams which they read.

`choices` decides which inputs are early. Streams publish panes of early inputs and rows of late ones (`publication`); `served`
remembers from when on a stream has published what. `panes_state` holds what has come and may still count, in memory and in files
(`statefiles`); `results` evaluates queries at the instants of a step. What is joined and how is in `weft.kernel.joinagg`.
"""
