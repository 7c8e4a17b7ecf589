"""The contract of a vLLM KV connector, ``KVConnectorBase_V1`` of vLLM 0.32.0.

Subclass it in the engine's own Python, name the connector, run pytest::

    class TestMine(ConnectorContract):
        connector = "MyConnector"
        module_path = "my_package.connector"
        extra_config = {"path": "${dir:store}"}
        store = "store"
"""

from __future__ import annotations

from conformance.contracts.construction import Construction
from conformance.contracts.matching import Matching
from conformance.contracts.metadata import Metadata
from conformance.contracts.release import Release
from conformance.contracts.resumption import Resumption
from conformance.contracts.transfer import Transfer


class ConnectorContract(Release, Resumption, Transfer, Metadata, Matching, Construction):
    """All clauses. Each is tried on a fresh prefill and decode instance in one process.

    The schedulers, configurations, KV caches and the order of hooks are vLLM's own; what is
    made up is the model: its KV is a function of the prompt alone.
    """
