"""One fault a file, named after it."""
