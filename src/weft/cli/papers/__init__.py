"""Commands about the papers alone: window sharing, aggregate trees, reproductions."""
