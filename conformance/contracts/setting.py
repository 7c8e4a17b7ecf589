"""How an author plugs a connector in, and the pair that the clauses are tried on."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from vllm.distributed.kv_transfer.kv_connector.factory import KVConnectorFactory

from conformance.contracts.clause import Contract
from conformance.contracts.instance import Bare, Instance, Setup
from conformance.contracts.pair import Pair, Saved
from conformance.contracts.places import Places
from conformance.contracts.tiny_model import BLOCK_SIZE

# Several blocks and a rest.
LENGTH = 3 * BLOCK_SIZE + 5


class Setting(Contract):
    """Attributes and hooks of :class:`~conformance.contracts.connector.ConnectorContract`."""

    connector: ClassVar[str]
    """Class name, as in ``kv_connector``."""
    module_path: ClassVar[str | None] = None
    """``kv_connector_module_path``; None for a connector that vLLM registers itself."""
    extra_config: ClassVar[Mapping[str, Any]] = {}
    """``kv_connector_extra_config`` of both sides; may hold ``${dir:name}``, ``${port:name}``."""
    prefill_extra_config: ClassVar[Mapping[str, Any]] = {}
    decode_extra_config: ClassVar[Mapping[str, Any]] = {}
    prefill_kv_config: ClassVar[Mapping[str, Any]] = {"kv_role": "kv_producer"}
    """Other fields of ``KVTransferConfig``."""
    decode_kv_config: ClassVar[Mapping[str, Any]] = {"kv_role": "kv_consumer"}
    prefill_env: ClassVar[Mapping[str, str]] = {}
    decode_env: ClassVar[Mapping[str, str]] = {}
    prefill_params: ClassVar[Mapping[str, Any]] = {
        "do_remote_decode": True,
        "do_remote_prefill": False,
    }
    """``kv_transfer_params`` of a request to prefill."""
    same_request_id: ClassVar[bool] = False
    """Whether decode's request must carry the client's id of the prefill request."""
    store: ClassVar[str | None] = None
    """The ``${dir:name}`` under which the saved KV lies as files, if it does."""
    patience_s: ClassVar[float] = 10.0
    """How long a transfer, a report or a lookup may take, in seconds."""

    def damage_store(self, pair: Pair, places: Places, saved: Saved) -> None:  # noqa: ARG002
        """Make the saved KV unreadable, after decode's scheduler has counted on it.

        Empties the files under :attr:`store`; without one the prefill instance goes away.
        """
        if self.store is None:
            pair.prefill.shutdown()
            return
        for file in places.folder(self.store).rglob("*"):
            if file.is_file():
                file.write_bytes(b"")

    @pytest.fixture
    def places(self, tmp_path: Path) -> Places:
        """Fresh folders and ports."""
        return Places(tmp_path)

    @pytest.fixture
    def pair(self, places: Places) -> Iterator[Pair]:
        """A prefill and a decode instance with nothing saved yet."""
        pair = self.new_pair(places)
        yield pair
        pair.shutdown()

    def new_pair(self, places: Places) -> Pair:
        """Starts both instances."""
        prefill, decode = (
            Instance(self.setup(side, places), places.folder("model"))
            for side in ("prefill", "decode")
        )
        return Pair(prefill, decode, self.patience_s, self.same_request_id)

    def bare(self, side: str, places: Places) -> Bare:
        """The configuration of one side, without connectors."""
        return Bare(self.setup(side, places), places.folder("model"))

    def setup(self, side: str, places: Places) -> Setup:
        """What ``prefill`` or ``decode`` is started with, placeholders filled."""
        own = getattr(self, f"{side}_extra_config")
        transfer = {
            "kv_connector": self.connector,
            "kv_connector_module_path": self.module_path,
            "kv_connector_extra_config": {**self.extra_config, **own},
            **getattr(self, f"{side}_kv_config"),
        }
        env = places.fill(getattr(self, f"{side}_env"))
        return Setup(places.fill(transfer), {name: str(value) for name, value in env.items()})

    def connector_class(self) -> type[Any]:
        """The class itself, before vLLM's factory has had a look at it."""
        if self.module_path:
            found: type[Any] = getattr(importlib.import_module(self.module_path), self.connector)
            return found
        named: type[Any] = KVConnectorFactory.get_connector_class_by_name(self.connector)
        return named
