"""Prefill never hears that its KV was fetched."""

from __future__ import annotations

from conformance.mutants.fault import UNRELATED, Fault


class NeverFinishSending(Fault):
    """Prefill never says that a request's KV was fetched, and keeps it."""

    over = ("nixl",)
    ends_servers = True
    red = ("transfer/nothing-held",)
    green = (*UNRELATED, "transfer/completion")

    def sent(self, requests: set[str]) -> set[str]:
        return set()
