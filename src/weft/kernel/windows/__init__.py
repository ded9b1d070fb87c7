"""Windows: which are due, where their fragments are, and their rows lowered to Spark types."""
