"""What users touch: `Weft`, query handles, streams and tables, the binding of queries."""
