"""Names of the faults in what is told of a request; see :mod:`.spoil`."""

from __future__ import annotations

KNOWN = {
    "usage_prompt": "usage counts one prompt token too many",
    "usage_completion": "usage counts one token of the answer too many",
    "usage_total": "the total in usage is the prompt's",
    "usage_none": "answers without usage",
    "stream_usage": "streamed usage counts one token of the answer too few",
    "usage_unasked": "streams tell usage that was not asked for",
    "stuck_usage": "running counts in a stream stay where they began",
    "all_cached": "usage says that the whole prompt was cached",
    "metrics_500": "/metrics is HTTP 500",
    "metrics_busy": "/metrics is HTTP 500 while a request is in flight",
    "metrics_refused": "/metrics is HTTP 500 once a request was refused",
    "metrics_garbage": "/metrics is no text format",
    "metrics_forget": "the connector's series are there once and never again",
    "metrics_fall": "a counter is 0 from the second reading on",
    "metrics_idle": "no request is ever shown to be running",
    "metrics_frozen": "the connector's series stay as they were after the first transfer",
}
