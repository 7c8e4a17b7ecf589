"""Is a running pair really transferring? A few requests, and the ladder they climb."""

from __future__ import annotations

import secrets
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

from conformance.assumed import assumed_profile, handoff_of, with_exported_records
from conformance.attached_fleet import AttachedFleet
from conformance.attachment import Attachment
from conformance.bodies import completion
from conformance.causality import VARIANT, causality
from conformance.clock import RunClock
from conformance.crashes import CRASHES, CrashLedger
from conformance.diagnosis import diagnose
from conformance.direction import external_tokens, reverse
from conformance.errors import (
    CheckFailed,
    ForeignTraffic,
    HandoffBroken,
    ReferenceFailed,
    Unsettled,
    UsageError,
)
from conformance.hello import must_be_quiet, say_hello
from conformance.ladder import PROVEN, accounting, control, movement, parity
from conformance.metrics import FINISHED, TokenSources
from conformance.options import RunOptions
from conformance.pair import Ask, Pair
from conformance.parity import compare
from conformance.probe_result import ProbeResult
from conformance.profile import Profile
from conformance.seen import Seen
from conformance.serving.attached import ServerFacts, look_at, must_answer
from conformance.serving.standing import Standing

MAX_TOKENS = 6


@dataclass(frozen=True)
class Request:
    """What to probe. ``tokens``: prompt length; ``seed``: a random one if ``None``."""

    attachment: Attachment
    connector: str | None = None
    handoff: str | None = None
    model: str | None = None
    tokens: int | None = None
    seed: int | None = None


def probe_pair(request: Request) -> ProbeResult:
    """Look, try, and say what it means.

    Raises :class:`SuiteError` where there is nothing to try: bad usage, nobody answers.
    """
    began = time.monotonic()
    trial = _Trial(request)
    trial.run()
    seen, found = trial.seen, diagnose(trial.seen)
    return ProbeResult(
        conclusion=found.conclusion,
        cause=found.cause,
        sentence=found.sentence,
        fix=found.fix,
        notes=[f"{name} differ: {words}" for _, name, words in seen.differences],
        handoff=trial.handoff,
        handoff_why=trial.why,
        prefill=seen.prefill,
        decode=seen.decode,
        router_url=request.attachment.router_url,
        prompt_tokens=seen.prompt_tokens,
        steps=seen.steps,
        duration_s=round(time.monotonic() - began, 2),
    )


class _Trial:
    """One probe while it goes on."""

    def __init__(self, request: Request) -> None:
        self._request = request
        attachment, headers = request.attachment, request.attachment.request_headers()
        self._known = _known_profile(request)
        prefill = look_at("--prefill-url", attachment.prefill_url, headers)
        decode = look_at("--decode-url", attachment.decode_url, headers)
        if attachment.router_url:
            must_answer("--router-url", attachment.router_url, headers)
        for option, facts in (("--prefill-url", prefill), ("--decode-url", decode)):
            _must_serve(option, facts, request.model)
        self.seen = Seen(prefill, decode, routed=attachment.router_url is not None)
        self.seen.one_server = attachment.prefill_url == attachment.decode_url
        self.handoff = self._known.handoff if self._known else request.handoff or "none"
        self.why = "as asked" if self._known or request.handoff else "not looked at"

    def run(self) -> None:
        """Until something makes the rest worthless, or to the end."""
        seen = self.seen
        if seen.one_server or not (seen.prefill.counts and seen.decode.counts):
            return
        model = self._request.model or seen.decode.models[0]
        seed = self._request.seed
        with tempfile.TemporaryDirectory(prefix="kvc-probe-") as folder:
            fleet = AttachedFleet(
                self._request.attachment,
                Standing(seen.prefill, seen.decode, None, model),
                secrets.randbelow(10**9) if seed is None else seed,
                RunClock(),
                CrashLedger(Path(folder) / CRASHES),
            )
            try:
                self._try(fleet, model)
            finally:
                fleet.close()

    def _try(self, fleet: AttachedFleet, model: str) -> None:
        seen = self.seen
        try:
            must_be_quiet(fleet.prefill, fleet.decode)
            pair = fleet.pair(self._profile(fleet), model)
            if not seen.one_server:
                self._climb(pair)
        except ForeignTraffic as problem:
            seen.traffic = str(problem)
        except Unsettled as problem:
            seen.unsettled = str(problem)
        except ReferenceFailed as problem:
            seen.no_oracle = str(problem)
        except CheckFailed as problem:
            seen.refused = str(problem)

    def _profile(self, fleet: AttachedFleet) -> Profile:
        """The one that was named, else what P's answer to a first request implies."""
        detect = self._known is None and self._request.handoff is None
        hello = say_hello(fleet, detect=detect)
        self.seen.one_server = hello.one_server
        self.seen.prefill_delta = hello.prefill_delta
        if detect:
            self.handoff, self.why = handoff_of(hello.returned)
        return self._known or assumed_profile(self.handoff, fleet.prefill.counters())

    def _climb(self, pair: Pair) -> None:
        seen, ask = self.seen, self._ask(pair)
        body = ask.body(PROVEN)
        expected = pair.expected(ask.endpoint, body)
        seen.prompt_tokens = expected.prompt_tokens
        seen.promised = pair.profile.granularity.promised(seen.prompt_tokens, pair.block_size)
        before = [client.counters().total(FINISHED) for client in (pair.prefill, pair.decode)]
        try:
            exchange = pair.exchange(ask, body)
        except HandoffBroken as problem:
            seen.no_params = str(problem)
            return self._other_way(pair)
        except Unsettled:
            now = [client.counters().total(FINISHED) for client in (pair.prefill, pair.decode)]
            seen.asked = (now[0] > before[0], now[1] > before[1])
            raise
        seen.prefill_delta, seen.decode_delta = exchange.prefill_delta, exchange.decode_delta
        sources = TokenSources.of(exchange.decode_delta)
        seen.steps.append(accounting(sources, seen.prompt_tokens, seen.promised))
        if not sources.external:
            return self._other_way(pair)
        if not self._known:
            deltas = exchange.prefill_delta, exchange.decode_delta
            pair = replace(pair, profile=with_exported_records(pair.profile, *deltas))
        seen.steps.append(movement(pair, exchange, 0, seen.promised))
        seen.steps.append(causality(pair, ask, seen.promised))
        seen.steps.append(parity(expected, exchange.legs[0].decode, pair.model.dtype))
        seen.steps.append(control(pair, ask))
        other = pair.expected(ask.endpoint, ask.body(VARIANT))
        seen.insensitive = compare(expected, other, pair.model.dtype).equal
        return None

    def _other_way(self, pair: Pair) -> None:
        """Nothing came: perhaps the two are just in each other's place."""
        if not self.seen.routed:
            self.seen.reverse_external = external_tokens(reverse(pair), "reverse")

    def _ask(self, pair: Pair) -> Ask:
        length = self._request.tokens or _few_blocks(pair.block_size, self.seen)
        return Ask(
            f"completion of {length} tokens",
            "completions",
            lambda variant: completion(pair.prompts.tokens(length, "probe", variant), MAX_TOKENS),
        )


def _few_blocks(block: int, seen: Seen) -> int:
    """Two and a half, or what the shorter of both servers takes."""
    longest = min(facts.max_model_len or 10**9 for facts in (seen.prefill, seen.decode))
    return max(1, min(2 * block + block // 2, longest - MAX_TOKENS - 1))


def _known_profile(request: Request) -> Profile | None:
    if request.connector and request.handoff:
        raise UsageError("give --connector or --handoff, not both: a profile names its handoff")
    if request.connector is None:
        return None
    options = RunOptions(connectors=(request.connector,))
    return options.chosen_profiles()[request.connector]


def _must_serve(option: str, facts: ServerFacts, model: str | None) -> None:
    if model and model not in facts.models:
        raise UsageError(f"{option} {facts.url} serves {', '.join(facts.models)}, not {model!r}")
