"""What makes every other observation worthless, or is about who was asked at all."""

from __future__ import annotations

from conformance.conclusion import Diagnosis, no, unknown
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
