"""What is known to fail, in Markdown: a section only where it says something."""

from __future__ import annotations

from collections.abc import Iterator

from matrix import known
from matrix.mdtext import cell_code, code, plain, row, rule
from matrix.model import Matrix


def flaky(matrix: Matrix) -> Iterator[str]:
    """The checks that come and go, with how often."""
    rows = known.flaky_rows(matrix)
    if not rows:
        return
    yield from (f"## {known.FLAKY}", "", known.FLAKY_LEAD, "")
    yield row(known.FLAKY_COLUMNS)
    yield rule(len(known.FLAKY_COLUMNS))
    for title, check, often, why in rows:
        yield row([plain(title), cell_code(check), often, plain(why)])


def files(matrix: Matrix) -> Iterator[str]:
    """Each run's expectations file, and the entries of it that made the run red."""
    found = known.files(matrix)
    if found:
        yield from (f"## {known.STANDING}", "")
    for run, result in found:
        yield f"- {code(run.run_id)}: {plain(known.file_line(result))}"
        for problem in known.file_problems(result):
            yield f"    - ❌ {plain(problem)}"
