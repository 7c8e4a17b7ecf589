"""What every handoff is: one request's way from the prefill leg to the decode leg."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from conformance.errors import UsageError

Params = dict[str, Any]
Headers = dict[str, str]


@dataclass(frozen=True)
class Place:
    """Where the two instances of a pair are, as a router would know it.

    ``ports``: leased ports by their names in the profile, those of one instance included.
    ``memo``: kept for the pair's lifetime, for what a router asks once, such as engine ids.
    """

    prefill_url: str
    decode_url: str
    host: str = "127.0.0.1"
    ports: dict[str, int] = field(default_factory=dict)
    memo: dict[str, Any] = field(default_factory=dict)

    def port(self, name: str) -> int:
        """A port by name; a child of MultiConnector has its profile's name before it.

        Raises :class:`UsageError` when there is none.
        """
        matches = [p for key, p in self.ports.items() if key == name or key.endswith(f"-{name}")]
        if len(matches) == 1:
            return matches[0]
        raise UsageError(
            f"the handoff needs a port named {name!r}, and there are: "
            f"{', '.join(self.ports) or 'none'}; use ${{port:{name}}} in the profile, or give "
            f"--handoff-port {name}=PORT for servers that run already"
        )


@dataclass(frozen=True)
class Handed:
    """What the decode request carries of the handoff: ``kv_transfer_params`` and headers."""

    params: Params | None = None
    headers: Headers = field(default_factory=dict)

    def with_ids(self, ids: Sequence[int]) -> Handed:
        """Also the token ids that decode is to continue from."""
        return self.with_param("prompt_token_ids", list(ids))

    def with_param(self, name: str, value: Any) -> Handed:
        """One param more, or another value of it."""
        return replace(self, params={**(self.params or {}), name: value})

    def into(self, body: dict[str, Any]) -> dict[str, Any]:
        """A request body with the params, where there are any."""
        return {**body, "kv_transfer_params": self.params} if self.params else dict(body)


NOTHING = Handed()


class Handoff:
    """Nothing to hand over: decode finds the KV by the prompt itself (shared stores).

    One instance a request. Subclasses say what a router has to do between the legs;
    ``at_once``: decode has to be asked without waiting for prefill's answer;
    ``may_go_at_once``: it can be; ``same_request_id``: the connector joins both legs by vLLM's
    request id, which begins with the endpoint's name, so both must use the same endpoint.
    """

    at_once: bool = False
    may_go_at_once: bool = False
    same_request_id: bool = False

    def __init__(self, place: Place) -> None:
        self.place = place

    def headers(self) -> Headers:
        """HTTP headers of both legs."""
        return {}

    def prefill_params(self) -> Params | None:
        """``kv_transfer_params`` of the prefill request; ``None`` sends none."""
        return None

    def decode_params(self, returned: Params | None) -> Params | None:  # noqa: ARG002
        """``kv_transfer_params`` of the decode request, from those P returned.

        ``returned`` is ``None`` when the legs run at once. Raises :class:`HandoffBroken` when P
        did not return what the connector promises: going on without it would make decode
        recompute the prompt and answer rightly.
        """
        return None

    def handed(self, returned: Params | None) -> Handed:
        """Both things that decode is given."""
        return Handed(self.decode_params(returned), self.headers())
