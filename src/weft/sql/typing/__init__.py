"""Expressions to types: what Spark's rules make of operators, functions and literals.

`scalars` is the whitelist of expressions that weft knows, `coercion` Spark's rules for operands of
different types, `analyzer` who is asked for everything else. What names mean is decided by a scope.
"""
