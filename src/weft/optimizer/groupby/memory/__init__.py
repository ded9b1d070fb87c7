"""Memory of intermediates: models of a bounded table, and the allocation of a budget."""
