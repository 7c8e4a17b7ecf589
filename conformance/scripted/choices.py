"""Choices of an answer as the OpenAI API writes them: whole, in pieces, with scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance.scripted import model, template
from conformance.scripted.engine import Finished
from conformance.scripted.model import Token
from conformance.scripted.sampling import Drawn

Json = dict[str, Any]


def whole(chat: bool, body: Json, ids: list[int], done: Finished) -> list[Json]:
    """Every choice of an unstreamed answer."""
    before = template.echoed(chat, body, ids)
    return [_choice(chat, body, ids, done, n, before) for n in range(len(done.choices))]


def _choice(chat: bool, body: Json, ids: list[int], done: Finished, n: int, before: str) -> Json:
    drawn = done.choices[n]
    choice: Json = {"index": n, "finish_reason": _reason(drawn), "stop_reason": drawn.stop_reason}
    choice["logprobs"] = scores(chat, body, ids, drawn.tokens, done)
    choice |= {"message": _message(drawn, before)} if chat else {"text": before + drawn.text}
    if done.prompt_scores and not chat:
        choice["prompt_logprobs"] = done.prompt_scores
    if body.get("return_token_ids"):
        choice["token_ids"] = [token.id for token in drawn.tokens]
        choice |= {} if chat else {"prompt_token_ids": ids}
    return choice


def pieces(chat: bool, body: Json, ids: list[int], done: Finished) -> Iterator[Json]:
    """Every choice of a streamed answer, token by token in turn."""
    texts = [_texts(drawn, body) for drawn in done.choices]
    before = template.echoed(chat, body, ids)
    for step in range(max(len(drawn.tokens) for drawn in done.choices)):
        for n, drawn in enumerate(done.choices):
            if step < len(drawn.tokens):
                text = (before if step == 0 else "") + texts[n][step]
                told = {"delta": _delta(drawn, texts[n], step, before)} if chat else {"text": text}
                yield _piece(chat, body, ids, drawn, n, step) | told


def _reason(drawn: Drawn) -> str:
    return drawn.parsing.reason(drawn.text, drawn.reason) if drawn.parsing else drawn.reason


def _message(drawn: Drawn, before: str) -> Json:
    told = drawn.parsing.message(drawn.text) if drawn.parsing else {"content": drawn.text}
    return {"role": "assistant", **told, "content": before + told["content"]}


def _delta(drawn: Drawn, texts: list[str], step: int, before: str) -> Json:
    if drawn.parsing is None:
        delta = {"content": texts[step]}
    else:
        last = step == len(texts) - 1
        delta = drawn.parsing.delta("".join(texts[:step]), texts[step], last=last)
    return {**delta, "content": before + delta.get("content", "")} if before and not step else delta


def _piece(chat: bool, body: Json, ids: list[int], drawn: Drawn, n: int, step: int) -> Json:
    token, last = drawn.tokens[step], step == len(drawn.tokens) - 1
    choice: Json = {"index": n, "finish_reason": _reason(drawn) if last else None}
    choice["stop_reason"] = drawn.stop_reason if last else None
    choice["logprobs"] = scores(chat, body, [], [token], None)
    if body.get("return_token_ids"):
        choice["token_ids"] = [token.id]
        choice |= {"prompt_token_ids": ids} if not chat and step == 0 else {}
    return choice


def _texts(drawn: Drawn, body: Json) -> list[str]:
    """Text by token: what may yet become a stop string is held back until it cannot."""
    if drawn.leaks:
        return [token.text for token in drawn.tokens]
    stops = body.get("stop") or ()
    lengths = [len(stop) for stop in ([stops] if isinstance(stops, str) else stops)]
    held = 0 if body.get("include_stop_str_in_output") else max(lengths, default=1) - 1
    texts, spelled, told = [], 0, 0
    for step, token in enumerate(drawn.tokens):
        spelled += len(token.text)
        sure = max(min(spelled - held, len(drawn.text)), told)
        upto = len(drawn.text) if step == len(drawn.tokens) - 1 else sure
        texts.append(drawn.text[told:upto])
        told = upto
    return texts


def scores(
    chat: bool, body: Json, ids: list[int], tokens: list[Token], done: Finished | None
) -> Json | None:
    """Log-probabilities of a choice, or of a piece of one; of the prompt too, where echoed."""
    asked = body.get("logprobs")
    if asked is None or asked is False:
        return None
    most = (body.get("top_logprobs") or 0) if chat else int(asked)
    if done is not None and done.few_tops:
        most -= 1
    if chat:
        return {"content": [_item(body, token, most) for token in tokens]}
    tops = [_tops(body, token, most) for token in tokens]
    block: Json = {
        "tokens": [_name(body, token.id, token.text) for token in tokens],
        "token_logprobs": [token.logprob for token in tokens],
        "top_logprobs": tops,
        "text_offset": [0] * len(tokens),
    }
    if body.get("echo") and done is not None and done.prompt_scores:
        block = _with_prompt(body, ids, block, done.prompt_scores)
    return block


def _with_prompt(body: Json, ids: list[int], block: Json, prompt: list[Json | None]) -> Json:
    values = [entry and entry[str(token)]["logprob"] for token, entry in zip(ids, prompt)]  # noqa: B905
    names = [_name(body, token, f" {token:x}") for token in ids]
    tops = [value and {name: value} for name, value in zip(names, values)]  # noqa: B905
    return {
        "tokens": [*names, *block["tokens"]],
        "token_logprobs": [*values, *block["token_logprobs"]],
        "top_logprobs": [*tops, *block["top_logprobs"]],
        "text_offset": [0] * (len(ids) + len(block["tokens"])),
    }


def _item(body: Json, token: Token, most: int) -> Json:
    tops = _tops(body, token, most)
    return {
        "token": _name(body, token.id, token.text),
        "logprob": token.logprob,
        "top_logprobs": [{"token": name, "logprob": value} for name, value in tops.items()],
    }


def _tops(body: Json, token: Token, most: int) -> dict[str, float]:
    ranked = [(token.id, token.text, token.logprob)]
    ranked += [
        (
            (token.other + rank) % model.VOCABULARY,
            f"{token.text}?{rank}",
            token.other_logprob - rank,
        )
        for rank in range(max(most - 1, 0))
    ]
    return {_name(body, number, text): value for number, text, value in ranked}


def _name(body: Json, number: int, text: str) -> str:
    return f"token_id:{number}" if body.get("return_tokens_as_token_ids") else text
