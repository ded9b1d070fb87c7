"""weft runs thousands of continuous queries on one Spark stream for about the price of one."""
