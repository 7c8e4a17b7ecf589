"""The registry of the scripted engine: some names of vLLM 0.32.0, loaded when they are asked for.

``FAKE_VLLM_FAULT=registers_more`` adds a connector that nobody knows.
"""

import importlib
import os
from typing import ClassVar

V1 = "vllm.distributed.kv_transfer.kv_connector.v1"


class KVConnectorFactory:
    """Names and what loads them."""

    _registry: ClassVar = {}

    @classmethod
    def register_connector(cls, name, module_path, class_name):
        """Register a class under a name, without importing it."""

        def loader():
            return getattr(importlib.import_module(module_path), class_name)

        cls._registry[name] = loader


for name, module in {
    "ExampleConnector": "example_connector",
    "ExampleHiddenStatesConnector": "example_hidden_states_connector",
    "NixlConnector": "nixl",
    "NixlPullConnector": "nixl",
    "HiSparseConnector": "hisparse.connector",
}.items():
    KVConnectorFactory.register_connector(name, f"{V1}.{module}", name)
if "registers_more" in os.environ.get("FAKE_VLLM_FAULT", ""):
    KVConnectorFactory.register_connector("BrandNewConnector", f"{V1}.brand_new", "BrandNew")
