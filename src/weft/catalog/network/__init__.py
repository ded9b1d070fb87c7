"""The query network as relations: ARGUS' system catalog (sections 5.4 and 6.6).

`tables` are the relations, `index` the look-ups and updates that the network generator asks for
(`weft.optimizer.network.index`), `lookups` what they ask, `statements` how it is executed,
`literals` the rows of conditions, `subsumption` what is decided on the rows that a look-up
fetches, `record` what is written for people and other programs.

All of it is an index: it can be rebuilt from the plan in the checkpoint, and remembers which plan
it holds.
"""
