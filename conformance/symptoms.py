"""The rules of :mod:`conformance.diagnosis`, one way of being wrong each."""

from __future__ import annotations

from conformance.diagnosis import Diagnosis, Rule, no, unknown
from conformance.evidence import Outcome, Rung
from conformance.metrics import BY_SOURCE
from conformance.seen import Seen


def one_server(seen: Seen) -> Diagnosis | None:
    if not seen.one_server:
        return None
    return no(
        "one_server",
        "prefill and decode are one server: what P is asked, D's counters count",
        "give each instance's own URL, not that of a load balancer in front of both",
    )


def stats_disabled(seen: Seen) -> Diagnosis | None:
    for side, facts in (("prefill", seen.prefill), ("decode", seen.decode)):
        if not facts.counts:
            return unknown(
                "stats_disabled",
                f"the {side} server at {facts.url}/metrics exports no {BY_SOURCE}",
                "start it without --disable-log-stats, and give its own URL, not a gateway's",
            )
    return None


def other_traffic(seen: Seen) -> Diagnosis | None:
    if not seen.traffic:
        return None
    return unknown(
        "other_traffic",
        f"somebody else uses these servers: {seen.traffic}",
        "take the pair out of its load balancer for some seconds, and probe again",
    )


def router_asks_others(seen: Seen) -> Diagnosis | None:
    prefilled, decoded = seen.asked
    if not (seen.routed and seen.unsettled) or (prefilled and decoded):
        return None
    if decoded:
        return no(
            "router_skips_prefill",
            "the router asked decode alone, and prefill never saw the request",
            "start the router in its prefill/decode mode, with this P among its prefill workers "
            "(vllm-router: --vllm-pd-disaggregation --prefill URL --decode URL)",
        )
    whom = "prefill was asked" if prefilled else "neither server was asked"
    return unknown(
        "router_asks_others",
        f"the router answered, but the decode server given did not see the request ({whom})",
        "give the router this pair alone, or --decode-url of the instance that it uses",
    )


def counters_stuck(seen: Seen) -> Diagnosis | None:
    if not seen.unsettled:
        return None
    fix = "is /metrics served by the same process that answers requests?"
    return unknown("counters_stuck", seen.unsettled, fix)


def swapped(seen: Seen) -> Diagnosis | None:
    if seen.reverse_external == 0:
        return None
    why = "P returns no params, and D does" if seen.no_params else "nothing goes from P to D"
    return no(
        "swapped",
        f"{why}, but {seen.reverse_external} tokens went from D to P: the URLs are swapped",
        "exchange --prefill-url and --decode-url, or kv_role of the two",
    )


def prefill_returns_nothing(seen: Seen) -> Diagnosis | None:
    if not seen.no_params:
        return None
    if seen.looked_up("prefill") is False:
        return no(
            "prefill_without_connector",
            "the prefill server has no KV connector: it looked nothing up and returned no params",
            "start it with --kv-transfer-config (kv_role kv_producer)",
        )
    return no(
        "no_params_from_prefill",
        f"P is no producer, or a proxy before it drops its params: {seen.no_params}",
        "check kv_role on P (kv_producer or kv_both), and give P's own URL",
    )


def refused(seen: Seen) -> Diagnosis | None:
    if not seen.refused or seen.differences:
        return None
    return no("refused", f"a request failed: {seen.refused}", "see that server's log")


def warm(seen: Seen) -> Diagnosis | None:
    if seen.sources is None or not seen.sources.local_cache_hit:
        return None
    return unknown(
        "warm_cache",
        f"{seen.sources.local_cache_hit} of {seen.prompt_tokens} prompt tokens were in decode's "
        "own prefix cache already, so it had no need of any transfer",
        "leave --seed out, so that the prompt is a new one",
    )


def too_short(seen: Seen) -> Diagnosis | None:
    if seen.sources is None or seen.external or seen.promised:
        return None
    block = seen.decode.block_size
    return unknown(
        "too_short",
        f"a prompt of {seen.prompt_tokens} tokens is within one block of {block}, and below a "
        "whole block nothing has to transfer",
        f"give --tokens {2 * block + 1} or more",
    )


def decode_without_connector(seen: Seen) -> Diagnosis | None:
    if _served(seen) or seen.looked_up("decode") is not False:
        return None
    return no(
        "decode_without_connector",
        "the decode server has no KV connector: it was given the handoff, asked no connector, and "
        f"computed all {seen.prompt_tokens} prompt tokens itself",
        "start it with --kv-transfer-config (kv_role kv_consumer)",
    )


def differ(seen: Seen) -> Diagnosis | None:
    """Only a reason if something is wrong: some connectors bridge such differences."""
    wrong = seen.refused or not _served(seen) or seen.outcome(Rung.PARITY) is Outcome.BROKEN
    if not wrong or not seen.differences:
        return None
    cause, name, words = seen.differences[0]
    tail = f" ({seen.refused})" if seen.refused else ""
    return no(
        cause,
        f"the {name} of prefill and decode differ, and the KV of one means nothing to the other: "
        f"{words}{tail}",
        "start both from the same build, with the same model and --block-size",
    )


def transfer_failed(seen: Seen) -> Diagnosis | None:
    if _served(seen) or not seen.failed_transfers:
        return None
    return no(
        "transfer_failed",
        f"decode tried to fetch the KV and failed ({seen.failed_transfers} failed transfers "
        "counted), then computed the prompt itself",
        "see both logs; can D reach P's side channel (VLLM_NIXL_SIDE_CHANNEL_HOST and _PORT)?",
    )


def lost_between(seen: Seen) -> Diagnosis | None:
    if _served(seen) or not seen.routed:
        return None
    return no(
        "params_lost_in_router",
        "prefill and decode were both asked, and decode computed the whole prompt itself: what P "
        "returned got lost in the router",
        "let the router speak this connector's handoff (vllm-router: --kv-connector); without "
        "--router-url the pair alone is probed",
    )


def prefill_without_connector(seen: Seen) -> Diagnosis | None:
    if _served(seen) or seen.looked_up("prefill") is not False:
        return None
    return no(
        "prefill_without_connector",
        "the prefill server has no KV connector: it asked none, so it stored nothing either",
        "start it with --kv-transfer-config (kv_role kv_producer)",
    )


def nothing_found(seen: Seen) -> Diagnosis | None:
    if _served(seen):
        return None
    asked = "asked its connector and " if seen.looked_up("decode") else ""
    return no(
        "nothing_found",
        f"decode {asked}was served nothing: it computed all {seen.prompt_tokens} prompt tokens "
        "itself",
        "is it the right --handoff or --connector? Do both use the same store, and the same "
        "PYTHONHASHSEED? See decode's log",
    )


def recomputed_in_part(seen: Seen) -> Diagnosis | None:
    if seen.external >= seen.promised:
        return None
    return no(
        "partial",
        f"decode was served {seen.external} of the {seen.promised} tokens that should have come "
        f"({seen.prompt_tokens} in the prompt), and computed the rest",
        "was P's KV stored in time, and evicted by nobody? See both logs",
    )


def insensitive(seen: Seen) -> Diagnosis | None:
    if not seen.insensitive:
        return None
    return unknown(
        "insensitive_model",
        "the model answers different prompts alike, so its answers prove nothing",
        "probe with another model",
    )


def unused(seen: Seen) -> Diagnosis | None:
    if seen.outcome(Rung.CAUSALITY) is not Outcome.RECOMPUTED:
        return None
    return no(
        "claimed",
        f"decode counts {seen.external} transferred tokens, but another prompt's KV does not "
        "change its answer: it does not use what it is given",
        "see what its connector does with the blocks that it reports as loaded",
    )


def wrong_answer(seen: Seen) -> Diagnosis | None:
    if seen.outcome(Rung.PARITY) is not Outcome.BROKEN:
        return None
    return no(
        "wrong_answer",
        "KV arrives, and the answer is not the one that decode gives alone: "
        f"{seen.summary(Rung.PARITY)}",
        "the KV is damaged on its way, or belongs to another model; see both logs",
    )


def blind(seen: Seen) -> Diagnosis | None:
    blind = [step for step in seen.steps if step.outcome is Outcome.BLIND]
    if not blind:
        return None
    return unknown("blind", blind[0].summary, "see what decode counts without any handoff")


def broken_books(seen: Seen) -> Diagnosis | None:
    if seen.outcome(Rung.ACCOUNTING) is not Outcome.BROKEN:
        return None
    return no("broken_books", seen.summary(Rung.ACCOUNTING), "see decode's counters")


def not_moved(seen: Seen) -> Diagnosis | None:
    if seen.outcome(Rung.MOVEMENT) is not Outcome.RECOMPUTED:
        return None
    words = f"decode counts a transfer, and its connector does not: {seen.summary(Rung.MOVEMENT)}"
    return no("not_moved", words, "is it the right --connector?")


def no_oracle(seen: Seen) -> Diagnosis | None:
    if not seen.no_oracle:
        return None
    return unknown(
        "no_oracle",
        f"{seen.external} of {seen.prompt_tokens} prompt tokens came from outside, but it cannot "
        f"be told whether the answer is right: {seen.no_oracle}",
        "",
    )


def _served(seen: Seen) -> bool:
    """Whether decode got anything, or it never came to that."""
    return seen.sources is None or seen.external > 0


RULES: tuple[Rule, ...] = (
    one_server,
    stats_disabled,
    other_traffic,
    router_asks_others,
    counters_stuck,
    swapped,
    prefill_returns_nothing,
    refused,
    warm,
    decode_without_connector,
    too_short,
    differ,
    transfer_failed,
    prefill_without_connector,
    lost_between,
    nothing_found,
    recomputed_in_part,
    broken_books,
    insensitive,
    unused,
    wrong_answer,
    not_moved,
    blind,
    no_oracle,
)
