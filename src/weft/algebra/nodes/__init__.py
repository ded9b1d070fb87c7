"""What stands between queries and the nodes of a plan: who reads which node, and what it holds.

`reads` says which nodes a query reads and which partials it needs of them, `selectors` by which
attributes it selects its rows, `implied` which partials a node need not carry. The nodes and the
plan themselves are in `algebra.plan`; which nodes a plan has is the optimizer's choice.
"""
