"""weft: thousands of continuous queries on one Spark stream for about the price of one."""

from weft.errors import WeftError

__all__ = ["WeftError"]
__version__ = "0.1.0"
