"""The engine of time windows: `engine` says what a step computes, `openstate` holds open fragments,
`weaving` runs levels 2 and 3 on the driver or in `lanes`, on which `placement` puts units of work; `spans` says
which fragments a step reads, `memory` how much they need; `projection` leaves to Spark what the kernel
does not evaluate, `panes` publishes what hidden queries give, `totals` counts. Rows become fragments in `runtime.level1`;
the order of things in a step is `runtime.protocol`'s.
"""
