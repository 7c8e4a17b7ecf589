"""Where a clause hung: the innermost calls of a stack that ``faulthandler`` wrote."""

from __future__ import annotations

import re
from pathlib import Path

CALLS = 4
FRAME = re.compile(r'^  File "(.+)", line (\d+) in (.+)$', re.MULTILINE)


def stacks_of(report: Path) -> Path:
    """The file beside a contract's report that the child writes them to."""
    return report.with_name(f"{report.name}.stacks")


def innermost(stacks: Path) -> str:
    """Such as ``wait (threading.py:327) < fetch (mine.py:12)``; empty where nothing was written.

    Of several threads the main one, which runs the clauses, is written last.
    """
    if not stacks.exists():
        return ""
    main = stacks.read_text(errors="replace").rpartition("Thread 0x")[2]
    frames = FRAME.findall(main)[:CALLS]
    return " < ".join(f"{call} ({Path(file).name}:{line})" for file, line, call in frames)
