"""Compatibility matrix: reports in, Markdown, one HTML page, JSON and badges out.

A pure function of report files: no network, no clock, and no vLLM.
"""

from matrix.diff_page import in_brief
from matrix.output import compare, render

__all__ = ["compare", "in_brief", "render"]
