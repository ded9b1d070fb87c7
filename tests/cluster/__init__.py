"""Real clusters on this machine: executors and workers are processes, and some of them are killed."""
