"""Stands for vLLM in a scripted environment."""
