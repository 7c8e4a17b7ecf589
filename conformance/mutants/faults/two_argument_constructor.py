"""Written for a vLLM that passed two arguments."""

from __future__ import annotations

from conformance.mutants.fault import Fault


class TwoArgumentConstructor(Fault):
    """The constructor takes the configuration and the role alone."""

    over = ("nixl",)
    constructed_as = "TakesTwoArguments"
    red = ("start/ready",)
