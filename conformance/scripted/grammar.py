"""Answers that obey the constraints of the checks, chosen by a number.

No grammar is compiled here: the server knows the shapes that the checks ask for.
"""

from __future__ import annotations

import json
from typing import Any

from conformance.scripted import model
from conformance.scripted.faults import Faults

Json = dict[str, Any]
_before: list[Json] = []


def constrained_text(body: Json, state: int, faults: Faults) -> str | None:
    """A valid answer for the request's constraint; ``None`` if it has none."""
    if "mixes_grammars" in faults:
        _before.append(body)
        body = {**body, **_constraint(_before[-2:][0])}
    draw = Draw(state)
    text = _called(body, draw) or _formatted(body.get("response_format") or {}, draw)
    text = text or _structured(body.get("structured_outputs") or {}, draw)
    if text is None or "free" in faults:
        return None
    if "wrong_arguments" in faults:
        text = text.replace('"arguments": {', '"arguments": {"more": 1, ')
    return text[model.LETTERS :] if "late_grammar" in faults else text


class Draw:
    """Choices of a model that knows one number."""

    def __init__(self, state: int) -> None:
        self._rest = state

    def below(self, limit: int) -> int:
        """A number from 0 on."""
        self._rest, found = divmod(self._rest, limit)
        return found

    def of(self, options: Any) -> Any:
        """One of them."""
        return options[self.below(len(options))]


def _constraint(body: Json) -> Json:
    return {key: body.get(key) for key in ("response_format", "structured_outputs")}


def _called(body: Json, draw: Draw) -> str | None:
    """Calls that ``tool_choice`` forces: one if it names a tool or allows no more."""
    functions = [tool["function"] for tool in body.get("tools") or ()]
    choice = body.get("tool_choice")
    if isinstance(choice, dict):
        functions = [f for f in functions if f["name"] == choice["function"]["name"]]
    elif choice != "required":
        return None
    single = choice != "required" or body.get("parallel_tool_calls") is False
    count = 1 if single else 1 + draw.below(3)
    return "\n".join(_call(draw.of(functions), draw) for _ in range(count))


def _call(function: Json, draw: Draw) -> str:
    arguments = json.dumps(_instance(function["parameters"], draw))
    return f'<tool_call>\n{{"name": "{function["name"]}", "arguments": {arguments}}}\n</tool_call>'


def _formatted(wanted: Json, draw: Draw) -> str | None:
    kind = wanted.get("type")
    if kind == "json_schema":
        return json.dumps(_instance(wanted["json_schema"]["schema"], draw))
    if kind == "json_object":
        return json.dumps({f"k{draw.below(99)}": {"number": draw.below(9999)}, "text": "x" * 400})
    return "".join(_tagged(e, draw) for e in wanted["format"]["elements"]) if kind else None


def _tagged(element: Json, draw: Draw) -> str:
    """One element of a structural tag's sequence."""
    if element["type"] == "const_string":
        return str(element["value"])
    content = json.dumps(_instance(element["content"]["json_schema"], draw))
    return f"{element['begin']}{content}{element['end']}"


def _structured(constraint: Json, draw: Draw) -> str | None:
    if "choice" in constraint:
        return str(draw.of(constraint["choice"]))
    if "regex" in constraint:
        letters = "".join(draw.of("abcdef") for _ in range(4))
        return f"{draw.of(['north', 'south', 'east', 'west'])}-{draw.below(1000):03d}-{letters}"
    if "grammar" in constraint:
        action, place = draw.of(["move", "count", "mend"]), draw.of(["crates", "ropes", "lamps"])
        return f"{action} {10 + draw.below(90)} {place}"
    return None


def _instance(schema: Json, draw: Draw, whole: Json | None = None) -> Any:
    whole = whole or schema
    if "$ref" in schema:
        return _instance(whole["$defs"][schema["$ref"].rpartition("/")[2]], draw, whole)
    if "enum" in schema:
        return draw.of(schema["enum"])
    if schema["type"] == "boolean":
        return draw.of([True, False])
    if schema["type"] == "array":
        least = schema.get("minItems", 0)
        count = least + draw.below(schema["maxItems"] - least + 1)
        return [_instance(schema["items"], draw, whole) for _ in range(count)]
    return {name: _instance(part, draw, whole) for name, part in schema["properties"].items()}
