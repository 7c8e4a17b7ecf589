"""For every assumption a release of vLLM that breaks it, and nothing else that is tried."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import count

from doctored import Asked, Doctor, Json

from conformance.scripted.engine import Finished
from conformance.scripted.model import BLOCK

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"


def rename(path: str, old: str, new: str) -> Doctor:
    """A field of an answer has another name."""

    def answer(asked: Asked, status: int, body: Json) -> None:
        if asked.path == path and status == 200:
            body[new] = body.pop(old)

    return Doctor(answer=answer)


def choice(path: str, **fields: object) -> Doctor:
    """Fields of every choice have another value."""

    def answer(asked: Asked, status: int, body: Json) -> None:
        if asked.path == path and status == 200:
            for each in body["choices"]:
                each.update(fields)

    return Doctor(answer=answer)


def instead(pattern: str, other: str) -> Doctor:
    """Something else is on ``/metrics``."""
    return Doctor(page=lambda text: re.sub(pattern, other, text))


def models(asked: Asked, status: int, body: Json) -> None:
    if asked.path == "/v1/models":
        for card in body["data"]:
            del card["root"]


def unprocessable(asked: Asked, status: int, body: Json) -> int | None:
    return 422 if asked.body.get("temperature") == -1 else None


def vague(word: str) -> Doctor:
    """What is wrong with a request is not told, where it would have been in this word."""

    def answer(asked: Asked, status: int, body: Json) -> None:
        if status == 400 and word in body["error"]["message"]:
            body["error"]["message"] = "Bad request."

    return Doctor(answer=answer)


def not_implemented(asked: Asked, status: int, body: Json) -> int | None:
    return 501 if status == 404 else None


def one_request(done: Finished) -> Finished:
    return replace(done, requests=1)


def whole_prompt_cached(done: Finished) -> Finished:
    """Of a known prompt of whole blocks, the last block is a hit as well."""
    if sum(done.sources.values()) != 2 * BLOCK:
        return done
    hit = {"local_cache_hit": 2 * BLOCK, "local_compute": 0, "external_kv_transfer": 0}
    return replace(done, sources=hit)


def salted(asked: Asked) -> None:
    """No prompt is found again."""
    if asked.path == COMPLETIONS:
        asked.body["cache_salt"] = str(next(_NUMBERS))


def saltless(asked: Asked) -> None:
    asked.body.pop("cache_salt", None)


_NUMBERS = count()


def total(asked: Asked, status: int, body: Json) -> None:
    if asked.path == COMPLETIONS and status == 200:
        body["usage"]["total_tokens"] += 1


def all_cached(asked: Asked, status: int, body: Json) -> None:
    if asked.path == COMPLETIONS and status == 200:
        body["usage"]["prompt_tokens_details"] = {"cached_tokens": body["usage"]["prompt_tokens"]}


def capped(asked: Asked, status: int, body: Json) -> None:
    if asked.path == COMPLETIONS and asked.body.get("max_tokens") == 1 and status == 200:
        for each in body["choices"]:
            each["finish_reason"] = "max_tokens"


def moody() -> Doctor:
    """The same request gets another answer the second time."""
    seen: list[Json] = []

    def answer(asked: Asked, status: int, body: Json) -> None:
        if asked.path != COMPLETIONS or status != 200:
            return
        if asked.body in seen:
            body["choices"][0]["token_ids"] = [7] * len(body["choices"][0]["token_ids"])
        seen.append(asked.body)

    return Doctor(answer=answer)


def echoes_params(asked: Asked, status: int, body: Json) -> None:
    if asked.body.get("kv_transfer_params") and status == 200:
        body["kv_transfer_params"] = asked.body["kv_transfer_params"]


def untopped(asked: Asked, status: int, body: Json) -> None:
    if asked.path == COMPLETIONS and status == 200:
        for each in body["choices"]:
            each["logprobs"]["top_logprobs"] = None


def spelled(asked: Asked, status: int, body: Json) -> None:
    """Tokens of a chat are named by their texts, whatever was asked for."""
    if asked.path == CHAT and status == 200:
        for item in body["choices"][0]["logprobs"]["content"]:
            for entry in (*item["top_logprobs"], item):
                entry["token"] = entry["token"].replace("token_id:", "word ")


def roleless(asked: Asked, events: list[Json]) -> None:
    if asked.path == CHAT:
        events[0]["choices"][0]["delta"] = {"content": ""}


def late_usage(asked: Asked, events: list[Json]) -> None:
    if asked.path == CHAT:
        del events[0]["usage"]


def cached_input(asked: Asked, status: int, body: Json) -> None:
    """Input tokens count as if what was cached were among them."""
    if asked.path == "/v1/messages":
        body["usage"]["input_tokens"] += 1


def anonymous(asked: Asked, status: int, body: Json) -> None:
    """Tokens are named otherwise in the log-probabilities of token-in/token-out."""
    if asked.path == "/inference/v1/generate":
        for item in body["choices"][0]["logprobs"]["content"]:
            item["top_logprobs"] = [
                {"id": top.pop("token_id"), **top} for top in item["top_logprobs"]
            ]


FAULTS: dict[str, Doctor] = {
    "server/tokenize": rename("/tokenize", "tokens", "token_ids"),
    "server/version": rename("/version", "version", "vllm"),
    "server/models": Doctor(answer=models),
    "errors/refused": Doctor(answer=unprocessable),
    "errors/missing-field": vague("messages"),
    "errors/too-long": vague("context"),
    "errors/unknown-path": Doctor(answer=not_implemented),
    "counters/exported": instead("vllm:num_preemptions_total", "vllm:preemptions_total"),
    "counters/cache-config": instead('enable_prefix_caching="True"', 'enable_prefix_caching="1"'),
    "counters/finished": instead('finished_reason="length"', 'finished_reason="max_tokens"'),
    "counters/complete": instead(r"(generation_tokens_total\S+) \d+", r"\1 0"),
    "counters/requests": Doctor(counted=one_request),
    "counters/refused": Doctor(fault="counts_refused@counters/refused"),
    "counters/idle": instead(r"(kv_cache_usage_perc\S+) 0.0\b", r"\1 0.25"),
    "counters/busy": instead(r"(num_requests_running\S+) \d+", r"\1 0"),
    "sources/sum": Doctor(
        page=lambda text: re.sub(
            r'(source="local_compute"\}) (\d+)', lambda m: f"{m[1]} {2 * int(m[2])}", text
        )
    ),
    "sources/cold": Doctor(
        page=lambda text: (
            text.replace('"local_compute"', '"x"')
            .replace('"external_kv_transfer"', '"local_compute"')
            .replace('"x"', '"external_kv_transfer"')
        )
    ),
    "sources/repeated": Doctor(heard=salted),
    "sources/last-token": Doctor(counted=whole_prompt_cached),
    "sources/cache-salt": Doctor(heard=saltless),
    "token-ids/completions": choice(COMPLETIONS, prompt_token_ids=None),
    "token-ids/chat": rename(CHAT, "prompt_token_ids", "prompt_tokens"),
    "answers/usage": Doctor(answer=total),
    "answers/cached-tokens": Doctor(answer=all_cached),
    "answers/one-token": Doctor(answer=capped),
    "answers/stop": choice(COMPLETIONS, stop_reason=None),
    "answers/repeatable": moody(),
    "answers/choices": choice(COMPLETIONS, index=0),
    "answers/request-id": rename(CHAT, "id", "request_id"),
    "answers/no-params": Doctor(answer=echoes_params),
    "scores/completions": Doctor(answer=untopped),
    "scores/chat": choice(CHAT, logprobs={"content": None}),
    "scores/named-by-id": Doctor(answer=spelled),
    "streaming/completions": Doctor(endless=COMPLETIONS),
    "streaming/chat": Doctor(events=roleless),
    "streaming/usage": Doctor(events=late_usage),
    "dialects/responses": rename("/v1/responses", "output_messages", "output_tokens"),
    "dialects/messages": Doctor(answer=cached_input),
    "dialects/generate": Doctor(answer=anonymous),
    "developer/reset": rename("/reset_prefix_cache", "success", "done"),
    "developer/pause": rename("/is_paused", "is_paused", "paused"),
}
