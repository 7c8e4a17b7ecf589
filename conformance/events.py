"""Server-sent events, as a streamed answer comes over the wire."""

from __future__ import annotations

import json
from collections.abc import Iterator

from conformance.answer import Transcript
from conformance.dialects import LAST_EVENT
from conformance.endpoints import Body, Endpoint


def read_events(lines: Iterator[str], endpoint: Endpoint) -> Transcript:
    """All events of a stream; it is done at ``[DONE]``, or at its endpoint's own last event."""
    events: list[Body] = []
    last = LAST_EVENT.get(endpoint)
    done, after_done = False, 0
    for line in lines:
        if not line.startswith("data:"):
            continue
        payload = line.removeprefix("data:").strip()
        if done:
            after_done += 1
        elif payload == "[DONE]":
            done = True
        else:
            events.append(json.loads(payload))
            done = last is not None and events[-1].get("type") == last
    return Transcript(tuple(events), done, after_done, endpoint)
