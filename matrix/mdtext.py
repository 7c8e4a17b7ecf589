"""Foreign text made safe to stand in one line of Markdown, a table's included."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 400
_MARKUP = re.compile(r"[\\`*\[\]]|(?<![^\W_])_|_(?![^\W_])")  # an underscore inside a word is text
_ENTITY = re.compile(r"[&<>|~$]")  # not every renderer takes a backslash before these
_NAMED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_LINK = re.compile(r"https?://[^\s<>\"'`|\\\[\]()*~$]+\Z")


def one_line(text: str) -> str:
    """Without line breaks and control characters, cut where nobody reads on."""
    flat = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return flat if len(flat) <= LONGEST else flat[: LONGEST - 1].rstrip() + "…"


def plain(text: str) -> str:
    """Text that renders as it reads: no markup, no table cell border, no HTML."""
    escaped = _MARKUP.sub(lambda found: "\\" + found.group(), one_line(text))
    return _ENTITY.sub(lambda found: _NAMED.get(found.group(), f"&#{ord(found.group())};"), escaped)


def code(text: str) -> str:
    """A code span around any text, uncut: a command must stay whole to be copied."""
    flat = " ".join(text.split())
    longest = max((len(ticks) for ticks in re.findall(r"`+", flat)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return f"{fence}{pad}{flat}{pad}{fence}"


def cell_code(text: str) -> str:
    """A code span inside a table, where a bar would end the cell."""
    return code(text).replace("|", r"\|")


def link(url: str) -> str:
    """A link if it is plainly one, and otherwise the text of it."""
    return f"<{url}>" if _LINK.fullmatch(url) else plain(url)


def row(texts: Iterable[str]) -> str:
    """One line of a table."""
    return "| " + " | ".join(texts) + " |"


def rule(columns: int) -> str:
    """The line below a table's head, of columns that read from the left."""
    return row([":---"] * columns)
