"""Edits to the text of an expectations file that leave everything else as it is, byte for byte.

A YAML library that keeps comments keeps them with what stands before them, so that an entry which
goes would take the comment on the next one along. Here the library says where each entry stands,
and whole lines are taken out and put in.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from conformance.errors import UsageError
from conformance.expectations import Entry, When
from conformance.expectations_file import KEY, document_of, line_of

NEW = f"# What is known to fail; docs/expectations.md says how to read it.\n{KEY}:\n"
_WIDTH = 100
_INDENT = 2

Replaced = Mapping[int, Sequence[Entry]]


@dataclass(frozen=True)
class _Span:
    """The lines of an entry, from 0: the comment right ``above`` it, its first, its end, and
    where what is between it and the ``following`` entry ends.

    ``line``: the one that the loader names it by, from 1.
    """

    line: int
    above: int
    first: int
    end: int
    following: int


def edited(path: Path, replaced: Replaced, added: Sequence[Entry]) -> tuple[str, str]:
    """The text of a file before and after.

    ``replaced``: by the line an entry begins in, what it gives way to; where that is nothing, the
    comment lines right above it go too. ``added`` come last. A file that does not exist begins
    with a line that explains it. Raises :class:`UsageError`.
    """
    if not path.exists():
        return "", NEW + _blocks(added, _INDENT) if added else ""
    document, raw = document_of(path)
    text = raw.decode("utf-8")
    if not replaced and not added:
        return text, text
    lines = (text if text.endswith("\n") else text + "\n").splitlines(keepends=True)
    listed, at = document.get(KEY), line_of(document, (KEY,)) - 1
    if not listed:
        lines[at] = f"{KEY}:\n{_blocks(added, _INDENT)}"
        return text, "".join(lines)
    if listed.fa.flow_style():
        raise UsageError(f"expectations {path}:{at + 1}: give each entry lines of its own first")
    spans = _spans(listed, lines)
    if not added and all(replaced.get(span.line) == () for span in spans):
        lines[at] = lines[at].replace(f"{KEY}:", f"{KEY}: []", 1)
    return text, "".join(_spliced(lines, spans, replaced, added))


def _spliced(
    lines: Sequence[str], spans: Sequence[_Span], replaced: Replaced, added: Sequence[Entry]
) -> Iterator[str]:
    column = _dash(lines[spans[0].first])
    yield from lines[: spans[0].above]
    for span in spans:
        between = lines[span.end : span.following]
        new = replaced.get(span.line)
        if new is None:
            yield from lines[span.above : span.end]
        elif new:
            yield from lines[span.above : span.first]
            yield _blocks(new, column)
        elif not "".join(between).strip():
            between = []  # else two entries would be further apart than they were
        if span is spans[-1]:
            yield _blocks(added, column)
        yield from between


def _spans(listed: CommentedSeq, lines: Sequence[str]) -> list[_Span]:
    begins = [listed.lc.item(number)[0] for number in range(len(listed))]
    firsts = [_first(line, lines) for line in begins]
    column = _dash(lines[firsts[0]])
    aboves = [_above(first, lines, column) for first in firsts]
    ends = [*aboves[1:], len(lines)]
    return [
        _Span(begins[n] + 1, aboves[n], firsts[n], _end(ends[n], lines, column), ends[n])
        for n in range(len(listed))
    ]


def _first(line: int, lines: Sequence[str]) -> int:
    """The line of an entry's dash, which may stand alone above it."""
    while not lines[line].lstrip().startswith("-"):
        line -= 1
    return line


def _above(first: int, lines: Sequence[str], column: int) -> int:
    while _is_comment(lines[first - 1], column):
        first -= 1
    return first


def _end(end: int, lines: Sequence[str], column: int) -> int:
    while not lines[end - 1].strip() or _is_comment(lines[end - 1], column):
        end -= 1
    return end


def _dash(line: str) -> int:
    return len(line) - len(line.lstrip())


def _is_comment(line: str, column: int) -> bool:
    """Whether it is a comment between entries, and not one within an entry."""
    return line.lstrip().startswith("#") and _dash(line) <= column


def _blocks(entries: Iterable[Entry], column: int) -> str:
    return "".join(_block(entry, column) for entry in entries)


def _block(entry: Entry, column: int) -> str:
    yaml = YAML()
    yaml.width = _WIDTH - column
    out = io.StringIO()
    yaml.dump([_document(entry)], out)
    # A folded line ends with the space that it was folded at, which says nothing.
    return "".join(f"{' ' * column}{line.rstrip()}\n" for line in out.getvalue().splitlines())


def _document(entry: Entry) -> dict[str, Any]:
    """An entry as a person would write it, in that order and without what says nothing."""
    said = entry.model_dump(exclude_defaults=True)
    said["verdict"] = entry.verdict.value
    if entry.when:
        said["when"] = _condition(entry.when)
    order = ("connector", "check", "verdict", "flaky", "reason", "link", "when", "expires")
    return {name: said[name] for name in order if name in said}


def _condition(when: When) -> CommentedMap:
    """In one line, such as ``{platforms: [cpu], packages: {vllm: "==0.32.0"}}``."""
    packages = {name: DoubleQuotedScalarString(said) for name, said in when.packages.items()}
    given = {"platforms": list(when.platforms), "packages": packages}
    condition = CommentedMap({name: said for name, said in given.items() if said})
    condition.fa.set_flow_style()
    return condition
