"""Compatibility matrix: reports in, Markdown, one HTML page and JSON out.

A pure function of report files: no network, no clock, and no vLLM.
"""

from matrix.output import render

__all__ = ["render"]
