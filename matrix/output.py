"""The files that a matrix, and a diff of two, are published as."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import TypeAdapter

from conformance.errors import ReportError
from conformance.report import Report
from matrix import badge
from matrix.collect import collect
from matrix.diff import Diff, diff
from matrix.diff_page import render_diff_html, render_diff_markdown
from matrix.html import anchor, render_html
from matrix.markdown import render_markdown
from matrix.model import Matrix

BADGES = "badges"


def render(reports: Sequence[Report], out: Path) -> list[Path]:
    """Write ``matrix.md``, ``matrix.html``, ``matrix.json`` and ``badges/`` into ``out``.

    Returns their paths. Each file is replaced in one step, and none before all are ready; badges
    of connectors that are no longer there are removed. Raises :class:`ReportError` where there
    is nothing to show or ``out`` cannot be written.
    """
    matrix = collect(reports)
    pages = {
        out / "matrix.md": render_markdown(matrix),
        out / "matrix.html": render_html(matrix),
        out / "matrix.json": render_json(matrix),
    }
    badges = {
        out / BADGES / f"{anchor(column.name)}.json": badge.text_of(column)
        for column in matrix.columns
    }
    _replace_all(pages | badges)
    _remove(path for path in (out / BADGES).glob("*.json") if path not in badges)
    return [*pages, out / BADGES]


def compare(old: Sequence[Report], new: Sequence[Report], out: Path) -> tuple[Diff, list[Path]]:
    """Write what changed from ``old`` to ``new`` as ``diff.md``, ``diff.html`` and ``diff.json``.

    Raises :class:`ReportError` as :func:`render` does.
    """
    before, now = collect(old), collect(new)
    found = diff(before, now)
    pages = {
        out / "diff.md": render_diff_markdown(found, before, now),
        out / "diff.html": render_diff_html(found, before, now),
        out / "diff.json": TypeAdapter(Diff).dump_json(found, indent=1).decode() + "\n",
    }
    return found, _replace_all(pages)


def render_json(matrix: Matrix) -> str:
    """The matrix for other programs; read it back with ``TypeAdapter(Matrix)``."""
    return TypeAdapter(Matrix).dump_json(matrix, indent=1).decode() + "\n"


def _replace_all(texts: Mapping[Path, str]) -> list[Path]:
    partials = {path: path.with_name(f".{path.name}.{os.getpid()}") for path in texts}
    target = next(iter(texts))
    try:
        for target, partial in partials.items():
            target.parent.mkdir(parents=True, exist_ok=True)
            partial.write_text(texts[target], encoding="utf-8")
        for target, partial in partials.items():
            os.replace(partial, target)
    except OSError as problem:
        raise ReportError(_cannot_write(target, problem)) from problem
    finally:
        _remove(partials.values())
    return list(texts)


def _cannot_write(target: Path, problem: OSError) -> str:
    return (
        f"cannot write {target}: {problem.strerror or problem}. "
        "Free some space or give another folder with --out DIR"
    )


def _remove(partials: Iterable[Path]) -> None:
    for partial in partials:
        with suppress(OSError):
            partial.unlink(missing_ok=True)
