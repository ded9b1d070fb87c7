"""SQL text to syntax, with the position of everything in the text.

`source` makes tokens, `select`, `expressions`, `literals`, `intervals` and `brackets` read them by
a `cursor`, `syntax` is what they give; `functions` is what is known of functions by name;
`statements` splits files, `statement_kind` and `relations` look at texts that only Spark can read
in full. What names and types mean is decided in `sql.binding`.
"""
