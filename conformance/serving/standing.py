"""A pair that runs already, as far as its servers describe themselves."""

from __future__ import annotations

from dataclasses import dataclass

from conformance.attachment import Attachment
from conformance.errors import UsageError
from conformance.serving.attached import ServerFacts, look_at, must_answer, must_count
from conformance.serving.command import MAX_MODEL_LEN
from conformance.serving.engine import Engines, Installation

NOT_KNOWN = "not known"


@dataclass(frozen=True)
class Standing:
    """What the servers of a pair say; ``model``: the one that all of them serve."""

    prefill: ServerFacts
    decode: ServerFacts
    reference: ServerFacts | None
    model: str

    @property
    def version(self) -> str:
        """vLLM's, by server where they differ."""
        named = {"prefill": self.prefill, "decode": self.decode, "reference": self.reference}
        said = {name: facts.version or NOT_KNOWN for name, facts in named.items() if facts}
        if len(set(said.values())) == 1:
            return said["decode"]
        return ", ".join(f"{version} ({name})" for name, version in said.items())

    def engines(self) -> Engines:
        """The builds behind the URLs, as far as they are known."""
        return _Elsewhere(_Remote(NOT_KNOWN, "vllm", self.version, f"device {NOT_KNOWN}", None))


def look_at_pair(attachment: Attachment, model: str | None) -> Standing:
    """Ask every server who it is. ``model``: the one wanted, else the first that decode serves.

    Raises :class:`UsageError` when they do not serve one model, as :func:`look_at` otherwise.
    """
    headers = attachment.request_headers()
    wanted = {
        "--prefill-url": attachment.prefill_url,
        "--decode-url": attachment.decode_url,
        "--reference-url": attachment.reference_url,
    }
    found = {option: look_at(option, url, headers) for option, url in wanted.items() if url}
    if attachment.router_url:
        must_answer("--router-url", attachment.router_url, headers)
    chosen = _one_model(found, model)
    for option in ("--prefill-url", "--decode-url"):
        must_count(option, found[option])
    _must_be_long_enough(found["--decode-url"])
    return Standing(
        found["--prefill-url"], found["--decode-url"], found.get("--reference-url"), chosen
    )


def _one_model(found: dict[str, ServerFacts], wanted: str | None) -> str:
    chosen = wanted or found["--decode-url"].models[0]
    for option, facts in found.items():
        if chosen not in facts.models:
            raise UsageError(
                f"{option} {facts.url} serves {', '.join(facts.models)}, and not {chosen!r}: "
                "prefill, decode and reference have to serve one model under one name; choose it "
                "with --model, or start them with the same --served-model-name"
            )
    return chosen


def _must_be_long_enough(facts: ServerFacts) -> None:
    if facts.max_model_len is not None and facts.max_model_len < MAX_MODEL_LEN:
        raise UsageError(
            f"--decode-url {facts.url} takes {facts.max_model_len} tokens at most, and checks are "
            f"written for {MAX_MODEL_LEN}: start the pair with a larger --max-model-len "
            "(kv-conformance probe takes any)"
        )


class _Remote(Installation):
    """A build that somebody else launched, and whose packages nobody can list from here."""

    def launch_prefix(self, model: str) -> list[str]:  # noqa: ARG002
        return []

    def missing(self, packages: tuple[str, ...]) -> list[str]:  # noqa: ARG002
        return []


class _Elsewhere(Engines):
    def __init__(self, engine: Installation) -> None:
        self.default = engine

    def of(self, profile: object) -> Installation:  # noqa: ARG002
        return self.default
