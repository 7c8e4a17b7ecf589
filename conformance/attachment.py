"""A pair that somebody else started: where it is, and what it takes to talk to it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, SerializationInfo, field_serializer

from conformance.errors import UsageError

API_KEY_VARIABLE = "KV_CONFORMANCE_API_KEY"
# What RunOptions are dumped with where they go to another part of this program, not to a file.
WITH_SECRETS = {"secrets": True}


ONE_PROCESS = (
    "a running pair is tried by one process, since its counters have to be ours alone: leave "
    "-n / --workers out"
)
_SECRET_OPTIONS = ("--api-key", "--header", "--kv-options")
_KEPT_BACK = "…"


class Attachment(BaseModel):
    """URLs of running servers. The key and the headers never reach a report.

    ``router_url``: requests go there; P's and D's own URLs are still needed for their counters.
    ``handoff_ports``: ports that a router would know, such as a bootstrap server's, by name.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    prefill_url: str
    decode_url: str
    reference_url: str | None = None
    router_url: str | None = None
    api_key: SecretStr | None = None
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    handoff_ports: dict[str, int] = Field(default_factory=dict)

    @field_serializer("api_key")
    def _keep_key(self, key: SecretStr | None, info: SerializationInfo) -> str | None:
        return key.get_secret_value() if key and info.context == WITH_SECRETS else None

    @field_serializer("headers")
    def _keep_headers(self, headers: dict[str, SecretStr], info: SerializationInfo) -> Any:
        if info.context != WITH_SECRETS:
            return {}
        return {name: value.get_secret_value() for name, value in headers.items()}

    def request_headers(self) -> dict[str, str]:
        """What every request carries. The key is also read from ``KV_CONFORMANCE_API_KEY``."""
        given = self.api_key.get_secret_value() if self.api_key else None
        key = given or os.environ.get(API_KEY_VARIABLE)
        own = {name: value.get_secret_value() for name, value in self.headers.items()}
        return ({"Authorization": f"Bearer {key}"} if key else {}) | own

    def words(self) -> list[str]:
        """The options that attach to it again, without what is secret in them."""
        words = ["--prefill-url", self.prefill_url, "--decode-url", self.decode_url]
        if self.reference_url:
            words += ["--reference-url", self.reference_url]
        if self.router_url:
            words += ["--router-url", self.router_url]
        for name in self.headers:
            words += ["--header", f"{name}: {_KEPT_BACK}"]
        for name, port in self.handoff_ports.items():
            words += ["--handoff-port", f"{name}={port}"]
        return words

    @classmethod
    def of(
        cls,
        prefill_url: str | None,
        decode_url: str | None,
        *,
        reference_url: str | None = None,
        router_url: str | None = None,
        api_key: str | None = None,
        headers: Sequence[str] = (),
        handoff_ports: Sequence[str] = (),
    ) -> Attachment | None:
        """From what a person gave; ``None`` if no URL was. Raises :class:`UsageError`."""
        rest = (reference_url, router_url, api_key, *headers, *handoff_ports)
        if not prefill_url and not decode_url:
            if any(rest):
                raise UsageError(_NEEDS_BOTH)
            return None
        if not prefill_url or not decode_url:
            raise UsageError(_NEEDS_BOTH)
        return cls(
            prefill_url=_url("--prefill-url", prefill_url),
            decode_url=_url("--decode-url", decode_url),
            reference_url=_url("--reference-url", reference_url) if reference_url else None,
            router_url=_url("--router-url", router_url) if router_url else None,
            api_key=SecretStr(api_key) if api_key else None,
            headers=dict(map(_header, headers)),
            handoff_ports=dict(map(_port, handoff_ports)),
        )


_NEEDS_BOTH = (
    "give --prefill-url and --decode-url together: a running pair is both, and --reference-url, "
    "--router-url, --api-key, --header and --handoff-port only make sense with them"
)


def without_secrets(command: Sequence[str]) -> list[str]:
    """A command line with the values of its secret options kept back."""
    kept: list[str] = []
    hidden = False
    for word in command:
        name, equals, _ = word.partition("=")
        if hidden:
            kept.append(_KEPT_BACK)
        elif equals and name in _SECRET_OPTIONS:
            kept.append(f"{name}={_KEPT_BACK}")
        else:
            kept.append(word)
        hidden = not hidden and word in _SECRET_OPTIONS
    return kept


def _url(option: str, given: str) -> str:
    """Without a trailing slash or ``/v1``. Never repeats a password in its error."""
    parts = urlsplit(given)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{option} {given!r} is not a URL; write it as http://host:8100")
    if parts.username or parts.password:
        raise UsageError(
            f"{option}: no user or password in a URL, since reports keep it; give "
            "--header 'Authorization: Basic …' instead"
        )
    return given.rstrip("/").removesuffix("/v1").rstrip("/")


def _header(given: str) -> tuple[str, SecretStr]:
    name, colon, value = given.partition(":")
    if not colon or not name.strip() or not value.strip():
        raise UsageError("--header needs the form 'Name: value', such as 'X-Tenant: test'")
    return name.strip(), SecretStr(value.strip())


def _port(given: str) -> tuple[str, int]:
    name, equals, number = given.partition("=")
    if not equals or not name or not number.isdigit() or not 0 < int(number) < 65536:
        raise UsageError(f"--handoff-port {given!r} needs the form NAME=PORT, e.g. bootstrap=8998")
    return name, int(number)
