"""Where results go, and the lists of result files."""
