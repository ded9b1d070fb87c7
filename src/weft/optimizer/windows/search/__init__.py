"""What the window optimizers search with.

`search_rates` counts the edges of candidate groups quickly;
`merge_sequence` merges two groups at a time, `local_search` moves queries between groups,
`exact_partition` tries all partitions of a few, `lower_bound` says how far the best can be. Nothing
here knows which optimizer asks: those are one folder up.
"""
