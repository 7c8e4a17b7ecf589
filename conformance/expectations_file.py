"""Reads expectations from YAML: every error names the file, the line, the value and the fix."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

from conformance.errors import UsageError
from conformance.expectations import Expectations, ExpectationsFile

KEY = "expectations"
_DOCS = "docs/expectations.md has an example"
_MISSING = {
    KEY: f"add '{KEY}: []'",
    "connector": "add the connector's name or a pattern, such as 'connector: nixl'",
    "check": "add a check's id or a pattern, such as \"check: 'length/*'\"",
    "verdict": "add how it fails: 'verdict: fail' or 'verdict: degraded'",
    "reason": "add in a sentence why it fails",
    "expires": "add the last day on which it counts, such as 'expires: 2027-06-30'",
}
_FIXES = {
    "extra_forbidden": "remove it or fix the spelling",
    "string_type": "put it in quotes",
    "string_pattern_mismatch": "give an address that begins with https://",
    "literal_error": "use one of these words",
}
# How pydantic names the members of an enum that a literal lists.
_ENUM = re.compile(r"<\w+\.\w+: ('\w+')>")
_DATE = "write a day such as 2027-06-30"


def load_expectations(path: Path) -> ExpectationsFile:
    """Read a file for a run. Raises :class:`UsageError`, also where a reason is still missing."""
    found = read_expectations(path)
    for entry in found.entries:
        if entry.unfilled:
            raise UsageError(
                f"expectations {found.at(entry)}: reason: {entry.reason!r} is no reason yet; say "
                f"why {entry.connector} {entry.check} fails, or remove the entry"
            )
    return found


def read_expectations(path: Path) -> ExpectationsFile:
    """Read a file, whether its reasons are filled in or not. Raises :class:`UsageError`."""
    document, raw = document_of(path)
    placed = {**document}
    if KEY in document:
        placed[KEY] = _with_lines(path, document)
    try:
        found = Expectations.model_validate(placed)
    except ValidationError as problem:
        raise UsageError(_explained(path, problem, document)) from problem
    return ExpectationsFile(str(path), hashlib.sha256(raw).hexdigest()[:12], found.expectations)


def document_of(path: Path) -> tuple[CommentedMap, bytes]:
    """The document with the place of everything in it, and the bytes it was read from."""
    try:
        raw = path.read_bytes()
        document = YAML().load(raw.decode("utf-8"))
    except FileNotFoundError as problem:
        raise UsageError(f"expectations {path}: no such file; {_DOCS}") from problem
    except (OSError, ValueError, YAMLError) as problem:
        said = str(problem).split("\n\nTo suppress")[0]
        raise UsageError(f"expectations {path} is not readable YAML: {said}") from problem
    if not isinstance(document, CommentedMap):
        raise UsageError(
            f"expectations {path}: the document must be a mapping '{KEY}: […]'; {_DOCS}"
        )
    return document, raw


def _with_lines(path: Path, document: CommentedMap) -> Any:
    """The entries with the line each begins in; what is no list of mappings, as it is."""
    listed = document[KEY] or []
    if not isinstance(listed, CommentedSeq):
        return listed
    for number, entry in enumerate(listed):
        if isinstance(entry, CommentedMap) and "line" in entry:
            at = line_of(document, (KEY, number, "line"))
            raise UsageError(f"expectations {path}:{at}: line: the suite fills this in; remove it")
    return [
        {**entry, "line": line_of(document, (KEY, number))}
        if isinstance(entry, CommentedMap)
        else entry
        for number, entry in enumerate(listed)
    ]


def _explained(path: Path, problem: ValidationError, document: CommentedMap) -> str:
    lines = [f"expectations {path} is malformed:"]
    for error in problem.errors():
        loc = error["loc"]
        where = ".".join(str(part) for part in loc)
        given = "" if error["type"] == "missing" else f" (given: {_plain(error['input'])!r})"
        fix = _fix(error["type"], str(loc[-1]))
        said = _ENUM.sub(r"\1", error["msg"].removeprefix("Value error, "))
        lines.append(f"  line {line_of(document, loc)}: {where}: {said}{given}{fix}")
    return "\n".join(lines)


def _fix(kind: str, key: str) -> str:
    if kind == "missing":
        return f"; {_MISSING[key]}"
    if kind.startswith("date"):
        return f"; {_DATE}"
    return f"; {_FIXES[kind]}" if kind in _FIXES else ""


def line_of(document: Any, loc: Sequence[int | str]) -> int:
    """The line, from 1, of the innermost part of a path that the document has."""
    line, node = 0, document
    for part in loc:
        if isinstance(node, CommentedMap) and part in node:
            line = node.lc.key(part)[0]
        elif isinstance(node, CommentedSeq):
            line = node.lc.item(part)[0]
        else:
            break
        node = node[part]
    return line + 1


def _plain(value: Any) -> Any:
    """A value without the mappings of the YAML library, which are not shown as one writes them."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value
