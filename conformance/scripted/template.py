"""The chat template: what a chat's prompt is made of, as the server's tokens."""

from __future__ import annotations

import json
from typing import Any

from conformance.scripted import model, thinking, variants


def render(body: dict[str, Any]) -> list[int]:
    """Token ids of a chat request's prompt: template arguments, messages, tools, whose turn."""
    arguments = body.get("chat_template_kwargs") or {}
    parts = [f"<{name}> {value}" for name, value in arguments.items()]
    parts += [f"<{one['role']}> {variants.words(one['content'])}" for one in body["messages"]]
    parts += [f"<tool> {json.dumps(tool, sort_keys=True)}" for tool in body.get("tools") or ()]
    if body.get("add_generation_prompt", True):
        parts.append(f"<assistant>{thinking.turn(body)}")
    elif not body.get("continue_final_message"):
        parts.append("<end>")
    return truncated(model.tokenize(" ".join(parts)), body)


def truncated(ids: list[int], body: dict[str, Any]) -> list[int]:
    """The last ``truncate_prompt_tokens`` of them, where that is asked for."""
    limit = body.get("truncate_prompt_tokens")
    return ids[-limit:] if limit else ids


def echoed(chat: bool, body: dict[str, Any], ids: list[int]) -> str:
    """What ``echo`` puts before an answer; nothing where the client gets token ids instead."""
    if not body.get("echo"):
        return ""
    if chat:
        last = body["messages"][-1]
        return str(last["content"]) if last["role"] == "assistant" else ""
    if body.get("return_token_ids"):
        return ""
    prompt = body["prompt"]
    return prompt if isinstance(prompt, str) else "".join(f" {token:x}" for token in ids)
