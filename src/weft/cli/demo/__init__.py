"""`weft demo`: two acts on made-up streams, each beside the same queries run the usual way.

`command` is the command, `windows` and `patterns` are its acts, `telling` prints.
"""
