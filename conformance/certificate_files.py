"""Writes what ``certify`` found out, as JSON and as a page for people."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from conformance.certificate import Certificate
from conformance.console import MARK
from conformance.errors import ReportError
from conformance.evidence import Outcome, Rung

GRANTED, REFUSED = "certificate", "no-certificate"


def write(certificate: Certificate, folder: Path) -> list[Path]:
    """Under a name that says the outcome; what an earlier run left under either is removed.

    Raises :class:`ReportError`.
    """
    stem = GRANTED if certificate.certified else REFUSED
    made = {
        folder / f"{stem}.json": certificate.model_dump_json(indent=1) + "\n",
        folder / f"{stem}.md": page(certificate),
    }
    try:
        remove_old(folder)
        for file, text in made.items():
            file.write_text(text, encoding="utf-8")
    except OSError as problem:
        raise ReportError(
            f"cannot write {problem.filename}: {problem.strerror}; free some space or give "
            "another folder with --out"
        ) from problem
    return list(made)


def remove_old(folder: Path) -> None:
    """A certificate of before must not be taken for this run's."""
    for stem in (GRANTED, REFUSED):
        for suffix in (".json", ".md"):
            (folder / f"{stem}{suffix}").unlink(missing_ok=True)


def page(certificate: Certificate) -> str:
    """The Markdown page."""
    environment = Environment(
        loader=PackageLoader("conformance", "."),
        autoescape=False,  # Markdown; see _cell
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["cell"] = _cell
    marks = {
        outcome.value: "–" if outcome is Outcome.NOT_APPLICABLE else MARK[outcome]
        for outcome in Outcome
    }
    return environment.get_template("certificate.md.j2").render(
        certificate=certificate, rungs=[rung.value for rung in Rung], marks=marks
    )


def _cell(text: str) -> str:
    """On one line, and harmless in a table and to HTML."""
    line = " ".join(text.split())
    return line.replace("|", "\\|").replace("<", "&lt;")
