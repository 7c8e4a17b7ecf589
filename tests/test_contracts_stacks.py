"""Where a clause hung, read from the stacks of all threads."""

from __future__ import annotations

from pathlib import Path

from conformance.contracts.stacks import innermost

STACKS = """Timeout (0:00:45)!
Thread 0x00007fc34efe3b80 (most recent call first):
  File "/opt/lib/other.py", line 7 in poll

Thread 0x00007fc34efe3b81 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 327 in wait
  File "/usr/lib/python3.11/threading.py", line 629 in wait
  File "/opt/my connector/mine.py", line 12 in Mine.fetch
  File "/opt/suite/pair.py", line 3 in step
  File "/opt/suite/transfer.py", line 9 in test_saved
"""


def test_the_innermost_calls_of_the_main_thread(tmp_path: Path) -> None:
    file = tmp_path / "stacks"
    file.write_text(STACKS)
    assert innermost(file) == (
        "wait (threading.py:327) < wait (threading.py:629) < Mine.fetch (mine.py:12)"
        " < step (pair.py:3)"
    )


def test_nothing_where_nothing_hung(tmp_path: Path) -> None:
    assert innermost(tmp_path / "absent") == ""
    (tmp_path / "stacks").touch()
    assert innermost(tmp_path / "stacks") == ""
