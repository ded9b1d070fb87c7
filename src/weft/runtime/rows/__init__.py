"""Row windows: an engine that follows the rows its stream publishes (`publication`), gives them numbers
in the order of event time (`numbering`), and computes windows over the numbers (`engine`). The windows
themselves are those of `runtime.level1` and the kernel.
"""
