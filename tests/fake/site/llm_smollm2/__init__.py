"""Importable, and nothing more."""
