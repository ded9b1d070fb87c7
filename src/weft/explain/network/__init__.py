"""EXPLAIN of a query network, as text, JSON and SVG.

`view` labels the nodes and says which queries each of them serves, `conditions` prints predicate sets
as people write them, `lookups` what rows find in tables, `savings` counts what sharing saved. `text`, `document` and `drawing` write all that; `layout` asks Graphviz where boxes and lines go. Plans
of windowed aggregates are explained one room up.
"""
