"""Expressions to types: what Spark's rules make of operators, functions and literals.

`scalars` is the whitelist of expressions that weft knows, `coercion` Spark's rules for operands of
different types, `exact` arithmetic without rounding, `moments` literals of time, `widening` columns put together, `analyzer` who is
asked for everything else. What names mean is decided by a scope.
"""
