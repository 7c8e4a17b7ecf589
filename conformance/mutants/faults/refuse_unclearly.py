"""Refuses to start, in words that tell nothing."""

from __future__ import annotations

from conformance.mutants.fault import Fault


class RefuseUnclearly(Fault):
    """The constructor raises an error that does not say what is the matter."""

    over = ("nixl",)
    constructed_as = "RefusesUnclearly"
    red = ("start/ready",)
