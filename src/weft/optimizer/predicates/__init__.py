"""Predicate sharing: from the conditions of many queries to signatures of rows.

`index` decides which conditions are cuts and which are bits. Conditions themselves, and what a
signature decides, are values of the algebra (`algebra.condition`, `algebra.signature`).
"""
