"""Connectors and servers that are broken on purpose, and the checks that have to see it."""
