"""``weft bench state``: what a step costs beside much open state, and what a second executor brings.

`steps` measures whole steps beside more and more open fragments, and is the command; `kernel` measures the kernel alone, without
Spark; `executors` runs a step whose kernel dominates on one executor and on two.
"""
