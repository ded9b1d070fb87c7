"""How the two sides of a physical join find each other.

`keys` are what both sides are searched by, `candidates` the pairs that a search gives, `history` the rows
that are kept for it, `expiry` how long. What is tested on candidates is in `members` and `conditions`.
"""
