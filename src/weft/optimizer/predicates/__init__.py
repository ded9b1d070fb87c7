"""Predicate sharing: from the conditions of many queries to signatures of rows."""
