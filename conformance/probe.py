"""Is a running pair really transferring? What the command asks for, and what it gets."""

from __future__ import annotations

import secrets
import tempfile
import time
from pathlib import Path

from conformance.attached_fleet import AttachedFleet
from conformance.clock import RunClock
from conformance.crashes import CRASHES, CrashLedger
from conformance.diagnosis import diagnose
from conformance.errors import UsageError
from conformance.metrics import patience
from conformance.options import RunOptions
from conformance.probe_result import ProbeResult, Request
from conformance.probe_trial import Trial
from conformance.profile import Profile
from conformance.seen import Seen
from conformance.serving.attached import ServerFacts, look_at, must_answer
from conformance.serving.standing import Standing

# A probe that waits as long as a run does is no probe; vLLM counts within milliseconds, so the
# limits are for a machine that is busy with something else.
SETTLE_LIMIT_S = 8.0
LATE_LIMIT_S = 1.0


def probe_pair(request: Request) -> ProbeResult:
    """Look, try, and say what it means.

    Raises :class:`SuiteError` where there is nothing to try: bad usage, nobody answers.
    """
    began = time.monotonic()
    known = _known_profile(request)
    seen, reference = _look(request)
    trial = Trial(seen, known, request.handoff, request.tokens)
    if not seen.one_server and seen.prefill.counts and seen.decode.counts:
        _run(trial, request, reference)
    found = diagnose(seen)
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


def _look(request: Request) -> tuple[Seen, ServerFacts | None]:
    """Both servers and the reference as they describe themselves."""
    given, headers = request.attachment, request.attachment.request_headers()
    prefill = look_at("--prefill-url", given.prefill_url, headers)
    decode = look_at("--decode-url", given.decode_url, headers)
    reference = None
    if given.reference_url:
        reference = look_at("--reference-url", given.reference_url, headers)
    if given.router_url:
        must_answer("--router-url", given.router_url, headers)
    for option, facts in (("--prefill-url", prefill), ("--decode-url", decode)):
        if request.model and request.model not in facts.models:
            raise UsageError(
                f"{option} {facts.url} serves {', '.join(facts.models)}, and not {request.model!r}"
            )
    one_server = given.prefill_url == given.decode_url
    return Seen(prefill, decode, given.router_url is not None, one_server), reference


def _run(trial: Trial, request: Request, reference: ServerFacts | None) -> None:
    seen = trial.seen
    model = request.model or seen.decode.models[0]
    with tempfile.TemporaryDirectory(prefix="kvc-probe-") as folder:
        fleet = AttachedFleet(
            request.attachment,
            Standing(seen.prefill, seen.decode, reference, model),
            secrets.randbelow(10**9) if request.seed is None else request.seed,
            RunClock(),
            CrashLedger(Path(folder) / CRASHES),
            request.answer_limit_s,
        )
        try:
            with patience(SETTLE_LIMIT_S, LATE_LIMIT_S):
                trial.run(fleet, model)
        finally:
            fleet.close()


def _known_profile(request: Request) -> Profile | None:
    if request.connector and request.handoff:
        raise UsageError("give --connector or --handoff, not both: a profile names its handoff")
    if request.connector is None:
        return None
    options = RunOptions(connectors=(request.connector,))
    return options.chosen_profiles()[request.connector]
