"""``kv-conformance expectations``: keeps a file of known failures in step with what is seen."""

from __future__ import annotations

import difflib
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from conformance.errors import ReportError

LASTS = timedelta(days=90)

KnownFailures = Annotated[
    Path | None,
    typer.Option(
        "--expectations",
        help="YAML file of what is known to fail: exit 0 while it does, 1 once it does not; see "
        "docs/expectations.md.",
    ),
]

app = typer.Typer(
    help="Files of known failures, as 'run --expectations' takes them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def _group() -> None:
    """So that ``update`` stays a command of its own."""


@app.command()
def update(
    file: Annotated[Path, typer.Argument(help="The file; it need not exist yet.")],
    reports: Annotated[list[Path], typer.Argument(help="Runs' folders or report.json files.")],
    write: Annotated[bool, typer.Option("--write", help="Apply the proposal.")] = False,
    expires: Annotated[
        datetime | None,
        typer.Option(
            formats=["%Y-%m-%d"],
            help=f"Last day of what is added. Default: {LASTS.days} days from now.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Propose, as a unified diff, what reports say should change in a file.

    Entries that no longer hold go, or are narrowed to what still fails; failures that nobody wrote
    down are added with 'reason: TODO', which a run refuses until it is filled in. Comments stay.
    """
    today = date.today()
    last = expires.date() if expires else today + LASTS
    before, after, notes = proposed(file, reports, today, last)
    name = str(file)
    lines = (before.splitlines(keepends=True), after.splitlines(keepends=True))
    typer.echo("".join(difflib.unified_diff(*lines, name, name)), nl=False)
    for note in notes:
        typer.echo(f"{file}: {note}", err=True)
    if write and before != after:
        _write(file, after)


def proposed(
    file: Path, reports: list[Path], today: date, expires: date
) -> tuple[str, str, list[str]]:
    """The text before and after, and what only a person can decide. Raises :class:`SuiteError`."""
    from conformance.expectations import NO_FILE
    from conformance.expectations_edit import edited
    from conformance.expectations_file import read_expectations
    from conformance.expectations_scope import known_places
    from conformance.expectations_update import propose, sights, unmatched
    from conformance.options import RunOptions
    from conformance.registry import all_checks
    from conformance.report import load

    kept = read_expectations(file) if file.exists() else NO_FILE
    loaded = [load(report) for report in reports]
    seen = sights(loaded, [check.id for check in all_checks()])
    places = known_places(RunOptions()) | {one.place for one in seen}
    nothing = {entry.line for entry in kept.entries if not entry.covered(places)}
    found = propose(kept.entries, nothing | unmatched(loaded, kept), seen, today, expires)
    before, after = edited(file, found.replaced, found.added)
    return before, after, found.notes


def _write(file: Path, text: str) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise ReportError(f"cannot write {file}: {problem.strerror or problem}") from problem
