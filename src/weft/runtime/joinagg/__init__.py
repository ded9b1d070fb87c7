"""Aggregation joins: an engine (`engine`) that follows all streams which they read.

`choices` decides which inputs are early, by what they hold (`loads`), and `serving` which published set serves each. Streams publish panes of early inputs and rows of late ones (`publication`); `served`
remembers from when on a stream has published what. `inputs` says who shares what and how long it is needed; `keeping` decides what stays
after a step, in files (`statefiles`); `waiting` tells which stream holds the others back; `spans` says which instants a step evaluates, `results` evaluates queries at them, by
physical joins (`joins`) on the driver or in tasks (`lanes`), where late inputs may have been joined by the network (`matches`). What is joined and how is in `weft.kernel.joinagg`.
"""
