"""Row windows: rows get numbers in the order of event time, and windows are cut by number."""
