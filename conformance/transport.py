"""One TLS context for every HTTP client: each fresh one reads all certificates, 50 ms of CPU."""

from __future__ import annotations

import ssl
from functools import cache


@cache
def tls() -> ssl.SSLContext:
    """What httpx would make by default."""
    return ssl.create_default_context()
