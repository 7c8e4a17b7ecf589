"""The matrix as one HTML page that stands alone: no file beside it, no request to anywhere.

Everything in a report is foreign text: autoescape is on, links are links only if they are
http(s), and the page's own policy forbids any script or style but the two hashed here.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from conformance.evidence import Outcome, Rung
from conformance.verdict import Verdict
from matrix import known, provenance, trust_words, words
from matrix.causes import loud
from matrix.model import Matrix


def render_html(matrix: Matrix) -> str:
    """The whole page; the same matrix always gives the same text."""
    return page("matrix.html.j2", matrix=matrix, causes=loud(matrix), tally=_tally(matrix))


def page(template: str, **content: Any) -> str:
    """A page of ours with its style and script inside, and a policy that allows no other."""
    style, script = _source("matrix.css"), _source("matrix.js")
    policy = (
        "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; "
        f"style-src {_hash(style)}; script-src {_hash(script)}"
    )
    marked = {"policy": Markup(policy), "style": Markup(style), "script": Markup(script)}
    return _environment().get_template(template).render(**marked, **content)


def anchor(*names: str) -> str:
    """The id and URL fragment of a cell, such as ``nixl/basic-transfer``."""
    return "/".join(re.sub(r"[^\w.-]+", "-", part) for part in names)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("matrix"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        anchor=anchor,
        words=words,
        trust=trust_words,
        known=known,
        provenance=provenance,
        Verdict=Verdict,
        rungs=tuple(Rung),
    )
    environment.filters.update(figure=_figure, is_link=_is_link, mark=_mark, height=_height)
    return environment


def _source(name: str) -> str:
    loader = PackageLoader("matrix")
    return loader.get_source(Environment(autoescape=True), name)[0]


def _hash(source: str) -> str:
    return f"'sha256-{b64encode(sha256(source.encode()).digest()).decode()}'"


def _tally(matrix: Matrix) -> dict[Verdict, int]:
    """Checks by verdict."""
    return {v: sum(column.tally.get(v, 0) for column in matrix.columns) for v in Verdict}


def _figure(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _is_link(text: str) -> bool:
    return re.match(r"https?://[^\s]+\Z", text) is not None


def _mark(outcome: Outcome) -> str:
    """The icon of a ladder step, borrowed from the verdict that the outcome leads to."""
    return {
        Outcome.HELD: Verdict.PASS,
        Outcome.BROKEN: Verdict.FAIL,
        Outcome.RECOMPUTED: Verdict.DEGRADED,
        Outcome.BLIND: Verdict.ERROR,
        Outcome.NOT_APPLICABLE: Verdict.UNSUPPORTED,
    }[outcome].value


def _height(rung: Rung | None) -> int:
    return list(Rung).index(rung) + 1 if rung else 0
