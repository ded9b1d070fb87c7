"""Group-by sharing: from the group-by sets of many queries to first-level nodes."""
