"""What went wrong on the way from prefill to decode."""

from __future__ import annotations

from conformance.conclusion import Diagnosis, no
from conformance.evidence import Outcome, Rung
from conformance.seen import Seen


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


def decode_without_connector(seen: Seen) -> Diagnosis | None:
    if served(seen) or seen.looked_up("decode") is not False:
        return None
    return no(
        "decode_without_connector",
        "the decode server has no KV connector: it was given the handoff, asked no connector, and "
        f"computed all {seen.prompt_tokens} prompt tokens itself",
        "start it with --kv-transfer-config (kv_role kv_consumer)",
    )


def differ(seen: Seen) -> Diagnosis | None:
    """Only a reason if something is wrong: some connectors bridge such differences."""
    wrong = seen.refused or not served(seen) or seen.outcome(Rung.PARITY) is Outcome.BROKEN
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
    if served(seen) or not seen.failed_transfers:
        return None
    return no(
        "transfer_failed",
        f"decode tried to fetch the KV and failed ({seen.failed_transfers} failed transfers "
        "counted), then computed the prompt itself",
        "see both logs; can D reach P's side channel (VLLM_NIXL_SIDE_CHANNEL_HOST and _PORT)?",
    )


def prefill_without_connector(seen: Seen) -> Diagnosis | None:
    if served(seen) or seen.looked_up("prefill") is not False:
        return None
    return no(
        "prefill_without_connector",
        "the prefill server has no KV connector: it asked none, so it stored nothing either",
        "start it with --kv-transfer-config (kv_role kv_producer)",
    )


def lost_between(seen: Seen) -> Diagnosis | None:
    if served(seen) or not seen.routed:
        return None
    return no(
        "params_lost_in_router",
        "prefill and decode were both asked, and decode computed the whole prompt itself: what P "
        "returned got lost in the router",
        "let the router speak this connector's handoff (vllm-router: --kv-connector); without "
        "--router-url the pair alone is probed",
    )


def nothing_found(seen: Seen) -> Diagnosis | None:
    if served(seen):
        return None
    asked = "asked its connector and " if seen.looked_up("decode") else ""
    return no(
        "nothing_found",
        f"decode {asked}was served nothing: it computed all {seen.prompt_tokens} prompt tokens "
        "itself",
        "is it the right --handoff or --connector? Do both use the same store, and the same "
        "PYTHONHASHSEED? See decode's log",
    )


def served(seen: Seen) -> bool:
    """Whether decode got anything, or it never came to that."""
    return seen.sources is None or seen.external > 0
