"""Answers that obey the constraints of the structured output checks, chosen by a number.

No grammar is compiled here: the server knows the shapes that the checks ask for.
"""

from __future__ import annotations

import json
from typing import Any


def constrained_text(body: dict[str, Any], state: int) -> str | None:
    """A valid answer for the request's constraint; ``None`` if it has none."""
    draw = _Draw(state)
    if body.get("response_format", {}).get("type") == "json_schema":
        return json.dumps(_instance(body["response_format"]["json_schema"]["schema"], draw))
    constraint = body.get("structured_outputs") or {}
    if "choice" in constraint:
        return str(draw.of(constraint["choice"]))
    if "regex" in constraint:
        letters = "".join(draw.of("abcdef") for _ in range(4))
        return f"{draw.of(['north', 'south', 'east', 'west'])}-{draw.below(1000):03d}-{letters}"
    if "grammar" in constraint:
        action, place = draw.of(["move", "count", "mend"]), draw.of(["crates", "ropes", "lamps"])
        return f"{action} {10 + draw.below(90)} {place}"
    return None


class _Draw:
    def __init__(self, state: int) -> None:
        self._rest = state

    def below(self, limit: int) -> int:
        self._rest, found = divmod(self._rest, limit)
        return found

    def of(self, options: Any) -> Any:
        return options[self.below(len(options))]


def _instance(schema: dict[str, Any], draw: _Draw) -> Any:
    if "enum" in schema:
        return draw.of(schema["enum"])
    if schema["type"] == "boolean":
        return draw.of([True, False])
    return {name: _instance(part, draw) for name, part in schema["properties"].items()}
