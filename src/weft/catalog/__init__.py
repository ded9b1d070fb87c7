"""The system catalog: streams and queries as relations in a database.

An index that any process can read and write while another one runs: `weft register` and
`weft drop` go through it. It can be rebuilt from the checkpoint's plan snapshots.
"""

from weft.catalog.store import Catalog, QueryRecord

__all__ = ["Catalog", "QueryRecord"]
