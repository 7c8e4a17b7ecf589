"""Which of two servers prefills: told from behaviour, since a server does not tell its kv_role."""

from __future__ import annotations

from dataclasses import replace

from conformance.bodies import completion
from conformance.errors import CheckFailed, UsageError
from conformance.metrics import TokenSources
from conformance.pair import Ask, Exchange, Pair

SWAPPED = (
    "--prefill-url and --decode-url are swapped: KV goes from the second to the first; exchange "
    "the two URLs"
)


def must_not_be_swapped(pair: Pair) -> None:
    """Raises :class:`UsageError` if nothing goes from P to D, and something the other way."""
    forward = _trial(pair, "forward")
    if may_be_swapped(forward) and external_from_decode(pair) > 0:
        raise UsageError(SWAPPED)


def may_be_swapped(exchange: Exchange | None) -> bool:
    """Whether P behaved as no prefill instance does, or D got nothing out of a store.

    Many connectors do not keep to their kv_role, so KV can go the other way for pairs whose URLs
    are right; but one whose P returned params is a prefill instance.
    """
    if exchange is None:
        return True
    returned = any(legs.prefill.kv_transfer_params for legs in exchange.legs)
    return not returned and TokenSources.of(exchange.decode_delta).external == 0


def external_from_decode(pair: Pair) -> int:
    """Tokens of a fresh prompt that P was served when D prefilled it; 0 if a leg failed."""
    exchange = _trial(reverse(pair), "reverse")
    return TokenSources.of(exchange.decode_delta).external if exchange else 0


def reverse(pair: Pair) -> Pair:
    """The same two servers, in each other's place; what the handoff kept is not carried over."""
    place = replace(
        pair.place,
        prefill_url=pair.place.decode_url,
        decode_url=pair.place.prefill_url,
        memo={},
    )
    return replace(pair, prefill=pair.decode, decode=pair.prefill, place=place)


def _trial(pair: Pair, arm: str) -> Exchange | None:
    """One fresh prompt through both legs; ``None`` if a leg failed."""
    prompt = pair.prompts.tokens(2 * pair.block_size + 3, "direction", arm)
    body = completion(prompt, max_tokens=1)
    try:
        return pair.exchange(Ask(f"{arm} trial", "completions", lambda _: body), body)
    except CheckFailed:
        return None
