"""The system catalog: streams and queries as relations in a database.

An index that any process can read and write while another one runs: `weft register` and `weft drop`
go through it. It can be rebuilt from the checkpoint's plan snapshots.

`store` has the operations, `registrations` those that many queries need in one change, `tables` the relations, `database` how they are reached; `migrations`
brings older ones up to date (`version_3`, `version_4`, `version_5` and `version_6` are some of them); `names` says which names are allowed;
`network/` is the query network as relations. Who may run a query, and when, is not decided here.
"""

from weft.catalog.store import Catalog, QueryRecord

__all__ = ["Catalog", "QueryRecord"]
