"""Which prompt a request has, or why it is refused, in the words of vLLM 0.32.0."""

from __future__ import annotations

from typing import Any

from conformance.scripted import model, template, thinking
from conformance.scripted.faults import Faults
from conformance.scripted.model import VOCABULARY

Json = dict[str, Any]
_IDS_FIELD = "kv_transfer_params.prompt_token_ids"


class BadRequest(Exception):
    """Answered with an HTTP error, 400 if no other is given."""

    def __init__(self, message: str, param: str | None = None, status: int = 400) -> None:
        super().__init__(message)
        self.status = status
        error = {"message": message, "type": "BadRequestError", "param": param, "code": status}
        self.body = {"error": error}


def prompt_of(chat: bool, body: Json, most: int, faults: Faults) -> list[int]:
    """The prompt's token ids, at most so many. Raises :class:`BadRequest`."""
    try:
        return _prompt_of(chat, body, most, faults)
    except BadRequest as problem:
        if "vague" in faults:
            raise BadRequest("Something is wrong with it.") from problem
        raise


def _prompt_of(chat: bool, body: Json, most: int, faults: Faults) -> list[int]:
    ids = _chat(thinking.heard(body, faults), faults) if chat else _completion(body, faults)
    if len(ids) >= most and "takes_long" not in faults:
        raise BadRequest(
            f"Input length ({len(ids)}) exceeds model's maximum context length ({most})."
        )
    _must_fit_together(body, faults)
    return ids


def _completion(body: Json, faults: Faults) -> list[int]:
    prompt = body["prompt"]
    ids = model.tokenize(prompt) if isinstance(prompt, str) else prompt
    if "ids_in_completions" in faults:
        ids = (body.get("kv_transfer_params") or {}).get("prompt_token_ids") or ids
    return template.truncated(_in_vocabulary(ids, "prompt"), body)


def _chat(body: Json, faults: Faults) -> list[int]:
    reused = (body.get("kv_transfer_params") or {}).get("prompt_token_ids")
    if "messages" not in body and ("no_messages" not in faults or reused is None):
        raise BadRequest(
            "[{'type': 'missing', 'loc': ('body', 'messages'), 'msg': 'Field required'}]"
        )
    if "echo_ids" not in faults and body.get("echo"):
        reused = None
    if reused is None or "renders" in faults:
        return template.render(body)
    if (
        not isinstance(reused, list)
        or not reused
        or any(type(i) is not int or i < 0 for i in reused)
    ):
        if "lax_ids" in faults:
            return template.render(body)
        raise BadRequest(
            "`kv_transfer_params['prompt_token_ids']` must be a non-empty list of non-negative "
            "integers.",
            _IDS_FIELD,
        )
    if "lax_ids" in faults:
        return reused
    if "cuts_ids" in faults:
        reused = template.truncated(reused, body)
    return _in_vocabulary(reused, _IDS_FIELD)


def _in_vocabulary(ids: list[int], param: str) -> list[int]:
    wrong = next((token for token in ids if not 0 <= token < VOCABULARY), None)
    if wrong is not None:
        raise BadRequest(f"Token id {wrong} is out of vocabulary", param)
    return ids


def _must_fit_together(body: Json, faults: Faults) -> None:
    least, most = body.get("min_tokens") or 0, body.get("max_tokens") or 16
    if least > most and "drop_min_tokens" not in faults:
        raise BadRequest(
            f"min_tokens must be less than or equal to max_tokens={most}, got {least}."
        )
    if (body.get("temperature") or 0) < 0:
        raise BadRequest(f"temperature must be non-negative, got {body['temperature']}.")
    part = most == 1 and "parses_part" in faults and body.get("tool_choice") not in (None, "none")
    if part or ("best_of" in body and "best_of" in faults):
        raise BadRequest("Internal server error", status=500)
    if "best_of" in body and "refuses_best_of" in faults:
        raise BadRequest("best_of is not supported")
