"""Names of the faults between a client and a healthy engine; see :mod:`.gateway`."""

from __future__ import annotations

DRIBBLES = "dribbles"
KNOWN = {
    "page_frozen": "/metrics stays as it was at the first reading",
    "page_garbled": "/metrics ends in half a line",
    "page_missing": "/metrics without the engine's counters",
    "sources_frozen": "where prompt tokens came from stays as it was at the first reading",
    "sources_missing": "/metrics does not tell where prompt tokens came from",
    "connector_frozen": "the connector's series stay as they were at the first reading",
    "connector_missing": "/metrics without the connector's series",
    "counters_reset": "all counters begin at 0 again with every request",
    "clock_jumps": "the time of day jumps an hour ahead and two back, again and again",
    "drops_ids": "answers lose their token ids on the way",
    "no_text": "answers have token ids and no text",
    "web_page": "every request is answered by a page for a browser, with HTTP 200",
    "cut_off": "the connection ends half way through an answer",
    "half_a_stream": "a stream ends half way, as if that were all",
    "doubles": "a piece of a streamed answer comes twice",
    "swaps": "two pieces of a streamed answer change places",
    DRIBBLES: "an answer comes in pieces, over N milliseconds",
    "neighbours_params": "prefill hands over the params of another request",
    "dies": "the process ends at a request",
}
# Fields of a request that a gateway may not know, and drop.
FIELDS = ("kv_transfer_params", "return_token_ids", "logprobs", "cache_salt")
KNOWN |= {f"drop_{name}": f"{name} is dropped on the way" for name in FIELDS}
