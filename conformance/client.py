"""Talks to one server. No retries, no fallback: what went wrong is what is reported."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import Any, cast

import httpx
import openai

from conformance.answer import Answer, Transcript
from conformance.as_asked import answer_in, must_hold, no_answer
from conformance.clock import RunClock
from conformance.crashes import CrashLedger, fingerprint
from conformance.deadline import ANSWER_LIMIT_S, TooSlow, within
from conformance.endpoints import Body, Endpoint, path_of, requests_in, with_id
from conformance.errors import CheckFailed, EnvironmentProblem, Rejected, ServerDied
from conformance.events import read_events
from conformance.metrics import Counters
from conformance.serving.served import Served
from conformance.transport import tls

__all__ = ["Body", "Client", "Endpoint", "Headers", "Rejected"]

Headers = dict[str, str]
# Tells the user agent of what is read over and over from that of what a check reads.
COUNTING = " (counters)"


@dataclass
class Client:
    """The OpenAI API of one server, on behalf of one check at a time."""

    server: Served
    clock: RunClock
    ledger: CrashLedger
    deployment: str
    check: str = "kv-conformance"
    # What the server must have counted; see metrics.Meter.
    answered: int = 0
    uncertain: bool = True
    answer_limit_s: float = ANSWER_LIMIT_S

    def __post_init__(self) -> None:
        self._lock = Lock()
        hooks = within(self.answer_limit_s)
        self._http = httpx.Client(
            base_url=self.server.url,
            timeout=self.answer_limit_s,
            verify=tls(),
            event_hooks=hooks,
        )
        self._openai = openai.OpenAI(
            base_url=f"{self.server.url}/v1",
            api_key="unused",
            max_retries=0,
            timeout=self.answer_limit_s,
            http_client=openai.DefaultHttpxClient(verify=tls(), event_hooks=hooks),
        )

    def close(self) -> None:
        """Drop the connections."""
        self._http.close()
        self._openai.close()

    def counters(self) -> Counters:
        """Every sample of ``/metrics`` now."""
        return self.server.counters({"User-Agent": f"kv-conformance {self.check}{COUNTING}"})

    def ask(self, endpoint: Endpoint, body: Body, headers: Headers | None = None) -> Answer:
        """An unstreamed answer, of completions and chat through the ``openai`` client.

        Raises :class:`Rejected` for an HTTP error, :class:`ServerDied` with the root cause
        when the server ends, :class:`CheckFailed` when no answer comes.
        """
        request = self._admit(endpoint, body)
        try:
            with self.clock.span("request"):
                found = self._asked(request, endpoint, body, headers)
            self._count(endpoint, body)
        except openai.APIStatusError as problem:
            raise self._rejected(request, problem.status_code, problem.body) from problem
        except (openai.APIConnectionError, httpx.TransportError) as problem:
            raise self._lost(request, problem) from problem
        except (ValueError, AttributeError) as problem:  # the openai client gives text as it is
            raise self._garbled(problem) from problem
        return answer_in(found, self.server.role, endpoint, body)

    def _asked(self, request: str, endpoint: Endpoint, body: Body, headers: Headers | None) -> Body:
        rest = {key: value for key, value in body.items() if key not in ("prompt", "messages")}
        extra: dict[str, Any] = {
            "model": self.server.model,
            "extra_body": rest,
            "extra_headers": self._headers(headers),
        }
        if endpoint == "completions":
            made = self._openai.completions.create(prompt=body["prompt"], **extra)
            return cast("Body", made.model_dump())
        if endpoint == "chat/completions":
            chatted = self._openai.chat.completions.create(messages=body["messages"], **extra)
            return cast("Body", chatted.model_dump())
        response = self._post(endpoint, body, headers)
        if response.status_code >= 400:
            raise self._rejected(request, response.status_code, _body_of(response))
        return cast("Body", response.json())

    def stream(self, endpoint: Endpoint, body: Body, headers: Headers | None = None) -> Transcript:
        """A streamed answer, event by event as it came over the wire. Raises as :meth:`ask`."""
        request = self._admit(endpoint, body)
        whole = {**self._whole(endpoint, body, headers), "stream": True}
        try:
            with (
                self.clock.span("request"),
                self._http.stream(
                    "POST", path_of(endpoint), json=whole, headers=self._headers(headers)
                ) as response,
            ):
                if response.status_code >= 400:
                    response.read()
                    raise self._rejected(request, response.status_code, _body_of(response))
                found = read_events(response.iter_lines(), endpoint)
            self._count(endpoint, body)
        except httpx.TransportError as problem:
            raise self._lost(request, problem) from problem
        except ValueError as problem:
            raise self._garbled(problem) from problem
        must_hold(self.server.role, body, found.pieces)
        return found

    def send(
        self, endpoint: Endpoint, body: Body, headers: Headers | None = None
    ) -> httpx.Response:
        """A request exactly as given, for bodies no typed client would send; any status."""
        request = self._admit(endpoint, body)
        try:
            with self.clock.span("request"):
                found = self._post(endpoint, body, headers)
            if found.status_code < 400:
                self._count(endpoint, body)
            return found
        except httpx.TransportError as problem:
            raise self._lost(request, problem) from problem

    def _post(self, endpoint: Endpoint, body: Body, headers: Headers | None) -> httpx.Response:
        whole = self._whole(endpoint, body, headers)
        return self._http.post(path_of(endpoint), json=whole, headers=self._headers(headers))

    def _whole(self, endpoint: Endpoint, body: Body, headers: Headers | None) -> Body:
        return {"model": self.server.model, **with_id(endpoint, body, headers or {})}

    def page(self, path: str) -> httpx.Response:
        """What a GET of a page such as ``/metrics`` gives, whatever its status."""
        try:
            with self.clock.span("request"):
                return self._http.get(path, headers=self._headers())
        except httpx.TransportError as problem:
            raise self._lost(path, problem) from problem

    def command(self, path: str, **params: str) -> httpx.Response:
        """What a POST of a command such as ``/reset_prefix_cache`` gives, whatever its status."""
        try:
            with self.clock.span("request"):
                return self._http.post(path, params=params, headers=self._headers())
        except httpx.TransportError as problem:
            raise self._lost(path, problem) from problem

    def rendered(self, messages: list[Body]) -> list[int]:
        """Token ids of a chat's prompt, by the server's own template. Raises as below."""
        return self._tokens({"messages": messages})

    def tokenize(self, text: str) -> list[int]:
        """Token ids of a text, by the server's own tokenizer, without special tokens.

        Raises :class:`EnvironmentProblem`.
        """
        return self._tokens({"prompt": text, "add_special_tokens": False})

    def _tokens(self, what: Body) -> list[int]:
        body = {"model": self.server.model, **what}
        try:
            with self.clock.span("request"):
                answer = self._http.post("/tokenize", json=body, headers=self._headers())
            return cast("list[int]", answer.raise_for_status().json()["tokens"])
        except (httpx.HTTPError, ValueError, LookupError) as problem:
            raise EnvironmentProblem(
                f"{self.server.url}/tokenize does not give token ids ({problem}), and prompts are "
                "made of them: give the server's own URL, not a gateway's"
            ) from problem

    def _headers(self, more: Headers | None = None) -> Headers:
        """The check's id in the user agent, so that server logs can be joined to cells."""
        return {"User-Agent": f"kv-conformance {self.check}", **self.server.headers, **(more or {})}

    def _admit(self, endpoint: Endpoint, body: Body) -> str:
        request = fingerprint(self.deployment, self.server.role, endpoint, body)
        self.ledger.refuse_third(request)
        return request

    def _count(self, endpoint: Endpoint, body: Body) -> None:
        """Beam search is a request for each beam at each step, and nobody tells how many."""
        self.uncertain = self.uncertain or bool(body.get("use_beam_search"))
        self.count(requests_in(endpoint, body))

    def count(self, answers: int) -> None:
        """So many requests were answered for us, by this client's doing or a router's."""
        with self._lock:
            self.answered += answers

    def _rejected(self, request: str, status: int, body: Any) -> CheckFailed:
        # A refused request is not counted as finished; one that failed inside the engine may be,
        # whatever its status: HTTP 400, "Out of range float values are not JSON compliant" (0.32.0)
        # answers a request that was computed, when a score in it is not a number.
        self.uncertain = True
        if status >= 500 and self._dies():
            return self._death(request)
        return Rejected(status, body, f"the {self.server.role} server")

    def _lost(self, request: str, problem: Exception) -> CheckFailed:
        self.uncertain = True
        timeouts = (openai.APITimeoutError, httpx.TimeoutException)
        if isinstance(problem, timeouts) or isinstance(problem.__cause__, TooSlow):
            return CheckFailed(
                f"no answer from the {self.server.role} server within {self.answer_limit_s:g} s"
            )
        if self._dies():
            return self._death(request)
        return CheckFailed(
            f"the {self.server.role} server dropped the connection and is still alive: {problem}"
        )

    def _garbled(self, problem: object) -> CheckFailed:
        self.uncertain = True
        return no_answer(self.server.role, problem)

    def _dies(self) -> bool:
        with self.clock.span("request"):
            return self.server.wait_for_death()

    def _death(self, request: str) -> ServerDied:
        cause = self.server.root_cause()
        self.ledger.record(request, cause.line)
        return ServerDied(f"the {self.server.role} server died: {cause.line}", cause.excerpt)


def _body_of(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return response.text
