"""Level 1 and the aggregate tree in native Spark: from rows to fragments in state files."""
