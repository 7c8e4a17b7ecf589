"""Which of two servers prefills: told from behaviour, since a server does not tell its kv_role."""

from __future__ import annotations

from dataclasses import replace

from conformance.bodies import completion
from conformance.errors import CheckFailed, UsageError
from conformance.metrics import TokenSources
from conformance.pair import Ask, Pair

SWAPPED = (
    "--prefill-url and --decode-url are swapped: KV goes from the second to the first; exchange "
    "the two URLs"
)


def must_not_be_swapped(pair: Pair) -> None:
    """Raises :class:`UsageError` if nothing goes from P to D, and something the other way."""
    if external_tokens(pair, "forward") == 0 and external_tokens(reverse(pair), "reverse") > 0:
        raise UsageError(SWAPPED)


def external_tokens(pair: Pair, arm: str) -> int:
    """Tokens that decode was served from outside, of a fresh prompt; 0 if a leg failed."""
    prompt = pair.prompts.tokens(2 * pair.block_size + 3, "direction", arm)
    body = completion(prompt, max_tokens=1)
    try:
        exchange = pair.exchange(Ask(f"{arm} trial", "completions", lambda _: body), body)
    except CheckFailed:
        return 0
    return TokenSources.of(exchange.decode_delta).external


def reverse(pair: Pair) -> Pair:
    """The same two servers, in each other's place; what the handoff kept is not carried over."""
    place = replace(
        pair.place,
        prefill_url=pair.place.decode_url,
        decode_url=pair.place.prefill_url,
        memo={},
    )
    return replace(pair, prefill=pair.decode, decode=pair.prefill, place=place)
