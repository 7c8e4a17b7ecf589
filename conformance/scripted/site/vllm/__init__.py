"""Stands for vLLM in a scripted environment."""

__version__ = "0.32.0"
