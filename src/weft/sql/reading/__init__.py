"""SQL text to syntax: tokens, statements, expressions, intervals, with places in the text."""
