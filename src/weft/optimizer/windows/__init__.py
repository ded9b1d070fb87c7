"""Window sharing: from the windows of many queries to the fragments they share."""
