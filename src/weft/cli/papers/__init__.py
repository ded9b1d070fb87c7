"""The commands about the papers: `plan`, `tree` and `reproduce`. None needs a project.

`window_table` and `tree_input` read the files of the first two and say what is wrong with them.
"""
