"""A diff as two pages: Markdown for a job's summary, HTML to open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from conformance.verdict import Verdict
from matrix import html, provenance, words
from matrix.diff import Change, Diff, Kind, State
from matrix.mdtext import code, plain
from matrix.model import Matrix

TITLE = "KV connector conformance: what changed"
KINDS: dict[Kind, str] = {
    Kind.LOST: "Passed before, does not now",
    Kind.CHANGED: "Another verdict",
    Kind.WEAKER: "Still passes, on less proof",
    Kind.FLAKY: "Known to come and go, and did",
    Kind.NEW: "New checks",
    Kind.GONE: "Checks that are gone, and did not pass before",
    Kind.WON: "Passes now",
}
NOTHING = "Nothing changed."


@dataclass(frozen=True)
class Group:
    """Checks of one connector that changed in the same way, for the same reason."""

    kind: Kind
    title: str
    change: str
    message: str
    changes: tuple[Change, ...]


def groups(found: Diff) -> tuple[Group, ...]:
    """The changes, each reason once a connector."""
    grouped: dict[tuple[Kind, str, str, str], list[Change]] = {}
    for change in found.changes:
        message = change.now.message if change.now else ""
        key = (change.kind, change.title, _arrow(change), message)
        grouped.setdefault(key, []).append(change)
    return tuple(Group(*key, tuple(changes)) for key, changes in grouped.items())


def _arrow(change: Change) -> str:
    return f"{_said(change.before)} → {_said(change.now)}"


def _said(state: State | None) -> str:
    if state is None:
        return "not there"
    proof = f", {state.reached.value}" if state.reached and state.verdict is Verdict.PASS else ""
    shim = ", through a shim" if state.through else ""
    return f"{words.SYMBOL[state.verdict]} {words.label(state.verdict)}{proof}{shim}"


def in_brief(found: Diff) -> str:
    """One line: how many checks of each kind."""
    counts = [f"{len(found.of(kind))} {kind.value}" for kind in Kind if found.of(kind)]
    return ", ".join([*counts, f"{found.same} as before"])


def sides(old: Matrix, new: Matrix) -> list[tuple[str, str, str]]:
    """What was tested with what: the name of each fact, before, and now."""
    before, now = dict(provenance.headline(old)), dict(provenance.headline(new))
    return [(name, before[name], now[name]) for name in now]


def render_diff_markdown(found: Diff, old: Matrix, new: Matrix) -> str:
    """The whole page."""
    lines = [f"# {TITLE}", "", f"**{in_brief(found)}**", "", *_sides(old, new), ""]
    told = groups(found)
    lines += [line for kind in Kind for line in _section(kind, [g for g in told if g.kind is kind])]
    return "\n".join(lines + ([] if told else [NOTHING])).rstrip() + "\n"


def _sides(old: Matrix, new: Matrix) -> Iterator[str]:
    for name, before, now in sides(old, new):
        said = plain(now) if before == now else f"{plain(now)} (before: {plain(before)})"
        yield f"- **{name}:** {said}"


def _section(kind: Kind, found: Sequence[Group]) -> Iterator[str]:
    if found:
        yield from (f"## {KINDS[kind]}", "")
    for group in found:
        why = f": {plain(group.message)}" if group.message else ""
        yield f"- {plain(group.title)}: {group.change}{why}"
        for change in group.changes:
            replay = change.now.replay if change.now and kind is Kind.LOST else ""
            yield f"    - {code(change.check)}" + (f": {code(replay)}" if replay else "")
    if found:
        yield ""


def render_diff_html(found: Diff, old: Matrix, new: Matrix) -> str:
    """The whole page, which stands alone as the matrix does."""
    return html.page(
        "diff.html.j2",
        title=TITLE,
        brief=in_brief(found),
        kinds=KINDS,
        groups=groups(found),
        sides=sides(old, new),
        nothing=NOTHING,
    )
