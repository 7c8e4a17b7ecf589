"""How a server refuses: the status, the form of the body, and that it names what is wrong."""

from __future__ import annotations

from conformance import expect
from conformance.assumptions.assumption import assume
from conformance.assumptions.plain import FEW, NOT_OFFERED, Plain
from conformance.bodies import completion
from conformance.client import Body, Endpoint

HANDLERS = "entrypoints/serve/exception_handling"
LEANS = ("client.py", "detours.py")


@assume(
    "errors/refused",
    source=f"sampling_params.py, {HANDLERS}",
    relied_on=(*LEANS, "checks/test_metrics.py", "checks/test_sampling.py"),
)
def _refused(plain: Plain) -> object:
    """A field with an impossible value, or one that contradicts another, is an HTTP 400 whose
    ``error.message`` names it."""
    body = completion(plain.ids(FEW, "refused"), 1)
    found = [_names(plain, {**body, "temperature": -1.0}, "temperature")]
    return [*found, _names(plain, {**body, "min_tokens": 8}, "min_tokens")]


@assume(
    "errors/missing-field",
    source=f"{HANDLERS}/handlers/validation.py",
    relied_on=(*LEANS, "checks/test_token_id_reuse.py"),
    needs=(),
)
def _missing_field(plain: Plain) -> object:
    """A chat without ``messages`` is an HTTP 400 whose ``error.message`` names them."""
    return _names(plain, {"max_tokens": 1}, "messages", endpoint="chat/completions")


@assume(
    "errors/too-long",
    source="renderers/params.py",
    relied_on=(*LEANS, "checks/test_token_id_limits.py"),
    needs=("server/tokenize", "server/models"),
)
def _too_long(plain: Plain) -> object:
    """A prompt longer than ``max_model_len`` is an HTTP 400 whose ``error.message`` names the
    model's context."""
    cards = plain.client.page("/v1/models").json()["data"]
    most = next(c["max_model_len"] for c in cards if c["id"] == plain.client.server.model)
    body = completion(plain.ids(most + 1, "too long"), 1)
    return _names(plain, body, "context", "max_model_len")


@assume(
    "errors/unknown-path",
    source="entrypoints/openai/api_server.py",
    relied_on=("developer.py", "checks/test_endpoints.py"),
    needs=(),
)
def _unknown_path(plain: Plain) -> object:
    """A path that a server does not have is an HTTP 403, 404 or 405."""
    status = plain.client.command("/kv_conformance/no_such_path").status_code
    expect.true(status in NOT_OFFERED, "HTTP status of a path that does not exist", status)
    return status


def _names(
    plain: Plain, body: Body, *words: str, endpoint: Endpoint = "completions"
) -> dict[str, object]:
    """The error, which names one of the words."""
    refused = plain.client.send(endpoint, body)
    expect.equal(refused.status_code, 400, f"HTTP status of a wrong {words[0]}")
    error = refused.json()["error"]
    expect.equal(error["code"], 400, "error.code")
    expect.true(isinstance(error["type"], str), "error.type should be a text", error["type"])
    named = any(word in error["message"] for word in words)
    expect.true(named, f"error.message should name {words[0]}", error["message"])
    return {"type": error["type"], "message": error["message"][:80]}
