"""The commands about the papers: `plan`, `place`, `tree`, `qep` and `reproduce`. None needs a project.

`window_table` and `rates`, `tree_input` and `qep_input` read what the first four are given and say what is
wrong with it; `json_input` is what the last two have in common.
"""
