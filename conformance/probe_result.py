"""What a probe found, as people and programs read it (``--json``)."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from conformance.attachment import Attachment
from conformance.conclusion import Conclusion
from conformance.evidence import Step
from conformance.serving.attached import ServerFacts
from conformance.verdict import ExitCode

_CODES = {
    Conclusion.TRANSFERS: ExitCode.CONFORMANT,
    Conclusion.DOES_NOT: ExitCode.NOT_CONFORMANT,
    Conclusion.UNKNOWN: ExitCode.HARNESS,
}


@dataclass(frozen=True)
class Request:
    """What to probe. ``tokens``: prompt length; ``seed``: a random one if ``None``.

    ``answer_limit_s``: how long any one answer may take.
    """

    attachment: Attachment
    connector: str | None = None
    handoff: str | None = None
    model: str | None = None
    tokens: int | None = None
    seed: int | None = None
    answer_limit_s: float = 20.0


class ProbeResult(BaseModel):
    """One probe. ``cause`` is a stable word for programs, ``sentence`` and ``fix`` for people.

    ``handoff_why``: who chose the handoff; ``prompt_tokens``: of the transferred prompt, 0 if
    it came to none; ``duration_s``: of the whole probe.
    """

    model_config = ConfigDict(extra="forbid")

    conclusion: Conclusion
    cause: str
    sentence: str
    fix: str = ""
    notes: list[str] = []
    handoff: str
    handoff_why: str
    prefill: ServerFacts
    decode: ServerFacts
    router_url: str | None = None
    prompt_tokens: int = 0
    steps: list[Step] = []
    duration_s: float = 0.0

    @property
    def exit_code(self) -> ExitCode:
        """0 transfers, 1 does not, 3 could not tell."""
        return _CODES[self.conclusion]
