"""Probe: each way of not transferring is made to happen by scripted servers, and named."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from conformance import hello, metrics, symptoms
from conformance.attachment import Attachment
from conformance.conclusion import Conclusion
from conformance.evidence import Outcome, Rung
from conformance.probe import probe_pair
from conformance.probe_result import ProbeResult, Request
from conformance.scripted.pairs import Place, place

NO, UNKNOWN, YES = Conclusion.DOES_NOT, Conclusion.UNKNOWN, Conclusion.TRANSFERS
Urls = tuple[str, ...]


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scripted servers count fast."""
    monkeypatch.setattr(metrics, "SETTLE_POLL_S", 0.002)
    monkeypatch.setattr(metrics, "SETTLE_LIMIT_S", 0.5)
    monkeypatch.setattr(hello, "QUIET_FOR_S", 0.02)
    monkeypatch.setattr(hello, "QUIET_LIMIT_S", 0.2)


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    with place(tmp_path) as made:
        yield made


def probe(urls: Urls, **more: Any) -> ProbeResult:
    """``urls``: prefill, decode and perhaps a router."""
    router = urls[2] if len(urls) > 2 else None
    reference = more.pop("reference_url", None)
    attachment = Attachment.of(*urls[:2], router_url=router, reference_url=reference)
    assert attachment is not None
    return probe_pair(Request(attachment, **more))


@dataclass(frozen=True)
class Wrong:
    """A pair that is wrong in one way, and how the probe has to put it."""

    cause: str
    conclusion: Conclusion
    words: str
    start: Callable[[Place], Urls]
    given: dict[str, Any] = field(default_factory=dict)


def nixl(fault: str) -> Callable[[Place], Urls]:
    return lambda here: here.pair(fault)


def unlike(*servers: dict[str, str]) -> Callable[[Place], Urls]:
    """A prefill and a decode server that are started differently."""
    return lambda here: tuple(here.server(**server) for server in servers)  # type: ignore[arg-type]


def routed(fault: str) -> Callable[[Place], Urls]:
    def start(here: Place) -> Urls:
        pair = here.pair()
        return (*pair, here.router(*pair, fault))

    return start


def one(here: Place) -> Urls:
    url = here.server("decode")
    return url, url.replace("127.0.0.1", "localhost")


def elsewhere(here: Place) -> Urls:
    """The router uses another decode server than the one that is named."""
    prefill, decode = here.pair()
    return prefill, decode, here.router(prefill, here.server("decode"))


def swapped(here: Place) -> Urls:
    prefill, decode = here.pair(connector="example")
    return decode, prefill


P, D = {"role": "prefill"}, {"role": "decode"}
PARAMS = {"handoff": "params_from_prefill"}
WRONG = (
    Wrong("one_server", NO, "prefill and decode are one server", one),
    Wrong(
        "stats_disabled",
        UNKNOWN,
        "exports no vllm:prompt_tokens_by_source",
        nixl("decode:no_stats"),
    ),
    Wrong("other_traffic", UNKNOWN, "none was ours", nixl("decode:busy")),
    Wrong("other_traffic", UNKNOWN, "other traffic is on this server", nixl("decode:foreign")),
    Wrong("counters_stuck", UNKNOWN, "did not settle", nixl("decode:never_settle")),
    Wrong("swapped", NO, "went from D to P: the URLs are swapped", swapped),
    Wrong("no_params_from_prefill", NO, "P is no producer, or a proxy", nixl("no_params"), PARAMS),
    Wrong(
        "prefill_without_connector",
        NO,
        "the prefill server has no KV connector",
        unlike({**P, "connector": ""}, D),
        PARAMS,
    ),
    Wrong(
        "prefill_without_connector",
        NO,
        "it asked none, so it stored nothing either",
        unlike({**P, "connector": ""}, {**D, "connector": "example"}),
    ),
    Wrong(
        "decode_without_connector",
        NO,
        "the decode server has no KV connector: it was given the handoff",
        unlike(P, {**D, "connector": ""}),
    ),
    Wrong("refused", NO, "HTTP 401", unlike(P, {**D, "fault": "wants_key"})),
    Wrong(
        "warm_cache", UNKNOWN, "were in decode's own prefix cache already", nixl(""), {"seed": 1}
    ),
    Wrong(
        "too_short",
        UNKNOWN,
        "within one block of 16",
        lambda here: here.pair(connector="example"),
        {"tokens": 9},
    ),
    Wrong(
        "models_differ",
        NO,
        "P has model, D has other",
        unlike(P, {**D, "name": "other", "fault": "recompute"}),
    ),
    Wrong(
        "versions_differ",
        NO,
        "P has 0.31.0, D has 0.32.0",
        unlike({**P, "fault": "version:31"}, {**D, "fault": "recompute"}),
    ),
    Wrong(
        "block_sizes_differ",
        NO,
        "P has 32, D has 16",
        unlike({**P, "fault": "block:32"}, {**D, "fault": "recompute"}),
    ),
    Wrong("transfer_failed", NO, "tried to fetch the KV and failed", nixl("fail_fetch")),
    Wrong(
        "nothing_found", NO, "asked its connector and was served nothing", nixl("decode:recompute")
    ),
    Wrong("partial", NO, "was served 16 of the 32 tokens", nixl("decode:half")),
    Wrong("insensitive_model", UNKNOWN, "answers different prompts alike", nixl("constant")),
    Wrong("claimed", NO, "does not use what it is given", nixl("decode:claim")),
    Wrong("wrong_answer", NO, "the answer is not the one", nixl("decode:wrong_kv"), PARAMS),
    Wrong("blind", UNKNOWN, "cannot tell a transfer from none", nixl("decode:make_up")),
    Wrong("not_moved", NO, "its connector does not", nixl("no_bytes"), {"connector": "nixl"}),
    Wrong("broken_books", NO, "sources sum to 39", nixl("miscount")),
    Wrong("router_skips_prefill", NO, "the router asked decode alone", routed("decode_only")),
    Wrong("params_lost_in_router", NO, "got lost in the router", routed("drop_params")),
    Wrong("router_asks_others", UNKNOWN, "did not see the request", elsewhere),
    Wrong(
        "no_oracle", UNKNOWN, "give a server of the same model", lambda here: writes_on_both(here)
    ),
)


def writes_on_both(here: Place) -> Urls:
    """Both sides store, under keys that ignore the salt."""
    both = {"role": "prefill", "connector": "example"}
    return unlike(both, both)(here)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{wrong.cause}: {wrong.words}")
def test_what_is_wrong_is_named(here: Place, wrong: Wrong) -> None:
    urls = wrong.start(here)
    if wrong.cause == "warm_cache":
        assert probe(urls, **wrong.given).conclusion is YES
    found = probe(urls, **wrong.given)
    assert (found.cause, found.conclusion) == (wrong.cause, wrong.conclusion), found.sentence
    assert wrong.words in found.sentence
    assert found.exit_code == (1 if wrong.conclusion is NO else 3)


def test_every_cause_is_made_to_happen() -> None:
    files = Path(symptoms.__file__).parent.glob("*.py")
    written = "".join(file.read_text(encoding="utf-8") for file in files)
    causes = set(re.findall(r'\b(?:no|unknown)\(\s*"(\w+)"', written))
    assert len(causes) > 15
    assert causes <= {wrong.cause for wrong in WRONG}


@pytest.mark.parametrize(
    ("connector", "given", "handoff", "external"),
    [
        ("nixl", {}, "params_from_prefill", 40),
        ("nixl", {"connector": "nixl"}, "params_from_prefill", 40),
        ("nixl", {"tokens": 5}, "params_from_prefill", 5),
        ("example", {}, "none", 32),
        ("example", {"connector": "example"}, "none", 32),
    ],
)
def test_a_healthy_pair_transfers(
    here: Place, connector: str, given: dict[str, Any], handoff: str, external: int
) -> None:
    found = probe(here.pair(connector=connector), **given)
    assert (found.conclusion, found.exit_code) == (YES, 0), found.sentence
    assert found.handoff == handoff
    assert f"{external} of {found.prompt_tokens} prompt tokens came from outside" in found.sentence
    assert outcomes(found)[Rung.PARITY] is outcomes(found)[Rung.CONTROL] is Outcome.HELD
    assert (outcomes(found)[Rung.CAUSALITY] is Outcome.HELD) == (
        connector == "nixl" and external == 40
    )


def test_a_transfer_between_unlike_servers_is_noted(here: Place) -> None:
    found = probe(unlike({**P, "fault": "version:31"}, {**D, "name": "other"})(here))
    assert found.conclusion is YES
    assert found.notes == [
        "models differ: P has model, D has other",
        "vLLM versions differ: P has 0.31.0, D has 0.32.0",
    ]


def test_a_router_that_works(here: Place) -> None:
    found = probe(routed("")(here))
    assert found.conclusion is YES
    assert outcomes(found)[Rung.CAUSALITY] is Outcome.NOT_APPLICABLE
    assert "the router makes both legs" in found.sentence


def test_a_reference_settles_what_decode_cannot(here: Place) -> None:
    reference = here.server("reference", connector="")
    found = probe(writes_on_both(here), reference_url=reference)
    assert found.conclusion is YES
    assert outcomes(found)[Rung.PARITY] is Outcome.HELD


def outcomes(found: ProbeResult) -> dict[Rung, Outcome]:
    return {step.name: step.outcome for step in found.steps}
