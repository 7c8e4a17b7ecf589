"""Placeholders of a profile: what is leased or made anew for each deployment.

``${port:NAME}`` a leased port, ``${dir:NAME}`` a folder that all instances and daemons share,
``${file:NAME}`` the path of a file that the profile's ``files`` describe, ``${python}`` the
engine's interpreter and ``${bin:NAME}`` a program installed beside it or on the search path.
"""

from __future__ import annotations

import re
from typing import Any

PLACEHOLDER = re.compile(r"\$\{(port|dir|file|bin):([a-zA-Z][a-zA-Z0-9_.-]*)\}|\$\{(python)\}")
_ANY = re.compile(r"\$\{[^}]*\}?")

Leased = dict[tuple[str, str], str]


def unknown_in(value: Any) -> str | None:
    """The first placeholder in a config value that has no meaning."""
    for text in strings(value):
        for found in _ANY.findall(text):
            if not PLACEHOLDER.fullmatch(found):
                return str(found)
    return None


def names_in(value: Any) -> set[tuple[str, str]]:
    """Every ``(kind, name)`` that a config value needs; ``("python", "")`` for the interpreter."""
    return {
        (found[1], found[2]) if found[1] else ("python", "")
        for text in strings(value)
        for found in PLACEHOLDER.finditer(text)
    }


def fill(value: Any, leased: Leased) -> Any:
    """A copy of a config value with each placeholder replaced by its lease.

    A string that is nothing but a port placeholder becomes an integer.
    """
    if isinstance(value, dict):
        return {fill(key, leased): fill(item, leased) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [fill(item, leased) for item in value]
    if not isinstance(value, str):
        return value
    whole = PLACEHOLDER.fullmatch(value)
    if whole and whole[1] == "port":
        return int(leased["port", whole[2]])
    return PLACEHOLDER.sub(lambda found: leased[_key(found)], value)


def renamed(value: Any, prefix: str) -> Any:
    """A copy in which every leased name carries a prefix, so that two profiles can be joined."""
    if isinstance(value, dict):
        return {renamed(key, prefix): renamed(item, prefix) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(renamed(item, prefix) for item in value)
    if not isinstance(value, str):
        return value
    return PLACEHOLDER.sub(lambda found: _with_prefix(found, prefix), value)


def strings(value: Any) -> list[str]:
    """Every string in a config value, keys of mappings included."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for item in pair for text in strings(item)]
    if isinstance(value, list | tuple):
        return [text for item in value for text in strings(item)]
    return []


def _key(found: re.Match[str]) -> tuple[str, str]:
    return (found[1], found[2]) if found[1] else ("python", "")


def _with_prefix(found: re.Match[str], prefix: str) -> str:
    if found[1] in ("port", "dir", "file"):
        return f"${{{found[1]}:{prefix}{found[2]}}}"
    return found[0]
