"""`weft run`: a project's queries, run with live progress until they end or the user ends them.

`command` is the command itself and imports little, so that it speaks at once; `running` registers,
starts and follows the run; `progress` shows the steps. `weft demo` follows its run with the same modules.
"""
