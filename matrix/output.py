"""The three files that a matrix is published as."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import TypeAdapter

from conformance.errors import ReportError
from conformance.report import Report
from matrix.collect import collect
from matrix.html import render_html
from matrix.markdown import render_markdown
from matrix.model import Matrix


def render(reports: Sequence[Report], out: Path) -> list[Path]:
    """Write ``matrix.md``, ``matrix.html`` and ``matrix.json`` into ``out``; returns their paths.

    Each file is replaced in one step, and none before all three are ready. Raises
    :class:`ReportError` where there is nothing to show or ``out`` cannot be written.
    """
    matrix = collect(reports)
    return _replace_all(
        {
            out / "matrix.md": render_markdown(matrix),
            out / "matrix.html": render_html(matrix),
            out / "matrix.json": render_json(matrix),
        }
    )


def render_json(matrix: Matrix) -> str:
    """The matrix for other programs; read it back with ``TypeAdapter(Matrix)``."""
    return TypeAdapter(Matrix).dump_json(matrix, indent=1).decode() + "\n"


def _replace_all(texts: Mapping[Path, str]) -> list[Path]:
    partials = {path: path.with_name(f".{path.name}.{os.getpid()}") for path in texts}
    target = next(iter(texts))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for target, partial in partials.items():
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
