"""What queries that group have in common, whatever their windows are.

`keys` is what GROUP BY names, `aggregates` binds calls of aggregate functions, `outputs` what is evaluated per
group: the select list and HAVING.
"""
