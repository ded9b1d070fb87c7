"""The query network's generator: join queries are added one by one to a shared network (ARGUS).

`generate` is the entry. `network` is the network under construction, `unions` adds a query to it,
`sharing` searches it for what a filter or join can share and adds the rest, `topology` says from
which ancestors a node's rows come, `restructure` changes what is there already, `options` say which
sharing is looked for. `index` is what the search asks for (the system catalog implements it),
`estimate` how many rows a node has.
Nothing here knows databases, Spark, or how a network computes.
"""
