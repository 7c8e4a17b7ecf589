"""Clauses about a connector's class, its constructor and its end."""

from __future__ import annotations

from vllm.distributed.kv_transfer.kv_connector.v1.base import (
    KVConnectorBase_V1,
    KVConnectorRole,
)

from conformance.contracts.places import Places
from conformance.contracts.setting import Setting


class Construction(Setting):
    """vLLM 0.32.0: ``KVConnectorFactory.create_connector``, ``KVConnectorBase_V1``."""

    def test_constructor_takes_three_arguments(self, places: Places) -> None:
        """vLLM's factory creates the connector in both roles with (vllm_config, role,
        kv_cache_config), and the base class is given all three."""
        for side in ("prefill", "decode"):
            bare = self.bare(side, places)
            for role in KVConnectorRole:
                made = bare.create(role)
                given = (made._vllm_config, made.role, made._kv_cache_config)
                wanted = (bare.config, role, bare.cache)
                assert all(a is b for a, b in zip(given, wanted, strict=True)), (
                    f"{side}, {role.name}: super().__init__() was not given vllm_config, role "
                    "and kv_cache_config as they came"
                )
                made.shutdown()

    def test_no_abstract_method_is_left(self) -> None:
        """The connector is a KVConnectorBase_V1 with every abstract method implemented."""
        found = self.connector_class()
        assert issubclass(found, KVConnectorBase_V1), f"{found!r} is no KVConnectorBase_V1"
        left = sorted(found.__abstractmethods__)
        assert not left, f"{self.connector} leaves abstract: {', '.join(left)}"

    def test_both_instances_start(self, places: Places) -> None:
        """A prefill and a decode instance come up: the worker's connector takes the KV caches, and
        the scheduler's what the workers have to say to others."""
        self.new_pair(places).shutdown()

    def test_shutdown_may_be_called_twice(self, places: Places) -> None:
        """shutdown() can be called a second time in both roles without raising."""
        bare = self.bare("prefill", places)
        for role in KVConnectorRole:
            made = bare.create(role)
            made.shutdown()
            try:
                made.shutdown()
            except Exception as problem:
                raise AssertionError(
                    f"{role.name}: the second shutdown() raised {problem!r}"
                ) from problem
