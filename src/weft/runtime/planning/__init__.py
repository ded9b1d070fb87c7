"""Plans of a running stream: `planner` makes them between two steps, `versions` numbers them and says
from when on a new query's windows are complete, `replanning` when other groups pay, by what `sampling`
measures. How a plan is chosen is the optimizer's, how it is kept the protocol's.
"""
