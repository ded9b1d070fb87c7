"""The commands about the papers: `plan`, `tree`, `qep` and `reproduce`. None needs a project.

`window_table`, `tree_input` and `qep_input` read the files of the first three and say what is wrong
with them; `json_input` is what the last two have in common.
"""
