"""What inputs hold at instants, and what is found out about it once (docs/decisions/0020).

`held` are the contents, with small integers for the values of columns; `entry_keys` are the join keys of entries, and `group_keys` the groups of
joined entries. How contents are made of entries is in `weft.kernel.joinagg.entries`.
"""
