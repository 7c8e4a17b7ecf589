"""MultiConnector: several connectors in one server, of which all save and one loads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from conformance.scripted.connectors import NoConnector, Params, connector_for
from conformance.scripted.faults import Faults

NAME = "MultiConnector"


class Together(NoConnector):
    """Loads from the first child that has tokens, as vLLM 0.32.0 does."""

    looks_up = True

    def __init__(self, children: Sequence[NoConnector], faults: Faults) -> None:
        self._children = children
        self._saving = children[:-1] if "idle_child" in faults else children

    def load(self, ids: Sequence[int], params: Params) -> tuple[list[int], int]:
        found = (child.load(ids, params) for child in self._children)
        return next((each for each in found if each[0]), ([], 0))

    def save(self, request: str, ids: Sequence[int], kv: list[int], params: Params) -> Params:
        told: Params = {}
        for child in self._saving:
            told |= child.save(request, ids, kv, params)
        return told

    def kept(self, request: str) -> list[int] | None:
        found = (child.kept(request) for child in self._children)
        return next((kv for kv in found if kv is not None), None)

    def damage(self) -> None:
        for child in self._children:
            child.damage()

    def lose(self) -> None:
        for child in self._children:
            child.lose()

    def forget(self) -> None:
        for child in self._children:
            child.forget()


def together(config: dict[str, Any], port: int, faults: Faults) -> Together:
    """With the children that ``--kv-transfer-config`` names."""
    listed = config["kv_connector_extra_config"]["connectors"]
    return Together([connector_for(child, port) for child in listed], faults)
