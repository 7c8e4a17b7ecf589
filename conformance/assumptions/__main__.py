"""``python -m conformance.assumptions`` prints the list of docs/assumptions.md."""

from __future__ import annotations

from collections.abc import Sequence

from conformance.assumptions.assumption import COUNTS, all_assumptions


def listed() -> str:
    """Every assumption with the file of vLLM it is read from and what rests on it, in Markdown."""
    lines: list[str] = []
    area = ""
    for known in all_assumptions():
        if known.id.partition("/")[0] != area:
            area = known.id.partition("/")[0]
            lines += ["", f"### {area}", ""]
        lines.append(f"- **`{known.id}`**: {known.says.replace('``', '`')}")
        sources = known.source.split(", ")
        lines.append(f"  vLLM: {_named(sources)}; here: {_named(known.relied_on)}.")
        needed = [needed for needed in known.needs if needed not in COUNTS]
        if needed:
            lines.append(f"  Rests on {_named(needed)}.")
        if known.intrusive:
            lines.append("  It pauses the server or empties its caches.")
    return "\n".join(lines).strip() + "\n"


def _named(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    print(listed(), end="")
